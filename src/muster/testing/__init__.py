"""What tests are made of, here and in the projects of users."""
