// Without imports: what programs bundle (petrel/outbox) has these rules, too.

const tokenPattern = /^[A-Za-z0-9_-]{1,64}$/

/** The placeholder token of a subject without an endpoint or without a valid tenant. */
export const nobody = "_"

/**
 * Returns true if the name is a valid subject token: `[A-Za-z0-9_-]{1,64}`, except the reserved
 * `_`.
 */
export const isToken = (text: string): boolean => tokenPattern.test(text) && text !== nobody

/** What a text that is no token must be, for messages. */
export const tokenExpected = "must be 1 to 64 letters, digits, - or _ (and not a lone _)"
