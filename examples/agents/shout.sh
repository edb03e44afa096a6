#!/bin/sh
# A plain program: text in, text out.
tr '[:lower:]' '[:upper:]'
