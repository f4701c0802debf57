/**
 * Returns the first value of a message header by its lower-case name; undefined if it is absent or
 * empty.
 */
export type GetHeader = (name: string) => string | undefined
