"""Commands of a service: servers, workers, and what is asked of them."""
