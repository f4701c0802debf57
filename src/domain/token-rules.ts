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

/** The first token of the types of Petrel's own events. */
export const ownToken = "petrel"

/** Returns true for a type of Petrel's own events, and for a filter that selects such types. */
export const isOwnType = (type: string): boolean =>
  type === ownToken || type.startsWith(`${ownToken}.`)

/** Returns the problem with the type of a published event (`invoice.paid`), or undefined. */
export const eventTypeProblem = (type: string): string | undefined =>
  isOwnType(type)
    ? `types whose first token is ${ownToken} belong to Petrel's own events: choose another`
    : typeTextProblem(type)

/**
 * Returns the problem with the type of one of Petrel's own events (`petrel.alert.success-low`), or
 * undefined.
 */
export const ownTypeProblem = (type: string): string | undefined =>
  isOwnType(type) ? typeTextProblem(type) : `the type is none of Petrel's own events`

const typeTextProblem = (type: string): string | undefined => {
  if (type === "") return "the type is missing"
  if (type.length > 200) return "the type is longer than 200 characters"
  const odd = type.split(".").find((token) => !tokenPattern.test(token))
  if (odd === undefined) return undefined
  return `the type's token ${JSON.stringify(odd.slice(0, 80))} must be 1 to 64 letters, digits, - or _`
}
