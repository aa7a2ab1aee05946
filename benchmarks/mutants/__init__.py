"""Bugs of one line that a named test must catch: does the suite notice a wrong formula?"""
