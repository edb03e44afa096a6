"""The store on PostgreSQL, which processes of many machines may open; needs the package psycopg."""
