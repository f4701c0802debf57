/** What one token may do, by its name in both headers. */
const policy = '"token"'

/**
 * Returns the headers that say how many requests a token may make, and how many more at once, as
 * draft-ietf-httpapi-ratelimit-headers-11 has them: lists of structured fields (RFC 9651).
 *
 * @param perSecond how many the token may make in a second, and at once after a pause.
 * @param left how many of them it may make now.
 * @param afterSeconds when it may make a further one, where none is left.
 */
export const rateHeaders = (
  perSecond: number,
  left: number,
  afterSeconds = 1
): Readonly<Record<string, string>> => ({
  "ratelimit-policy": `${policy};q=${perSecond};w=1`,
  // What is used is there again within a second.
  ratelimit: `${policy};r=${left};t=${afterSeconds}`
})
