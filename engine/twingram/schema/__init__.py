"""JSON Schema -> expressions, through the spelling of a format.

`compiler` drives; `branches` resolves what combines schemas; `objects`, `arrays`, `strings`, `numbers` and `literals`
build one type each; `forms` holds what a place of a format is made of; `report` says what was done with each keyword.
"""
