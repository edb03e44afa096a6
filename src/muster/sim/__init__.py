"""The rehearsal: an HTTP server that speaks the providers' protocols, with scripted answers, faults and an audit."""
