"""A small shop."""


def total(prices):
    # BAD: a sum by hand
    result = 0
    for price in prices:
        result += price
    return result


def find(database, order):
    return database.execute("SELECT * FROM orders WHERE id = " + order)
