"""A typed client of `muster serve`: starts runs, follows them through restarts of the server, and cancels them."""

from muster.client.service_client import ServedRun, ServiceClient, ServiceUpdate

__all__ = ["ServedRun", "ServiceClient", "ServiceUpdate"]
