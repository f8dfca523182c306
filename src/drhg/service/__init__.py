"""The service: solves over HTTP, and the page that shows them live."""
