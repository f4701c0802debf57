/** The parsed URL of a request, made once per endpoint instead of at each attempt. */
export interface Target {
  readonly url: string
  readonly origin: string
  readonly path: string
  readonly secure: boolean
}

/** @param url an absolute http or https URL. */
export const targetOf = (url: string | URL): Target => {
  const { href, origin, pathname, search, protocol } = new URL(url)
  return { url: href, origin, path: pathname + search, secure: protocol === "https:" }
}

const followed: ReadonlySet<number> = new Set([301, 302, 307, 308])

/**
 * True for redirects that are followed, all with the same POST. 303 asks for a GET, which would not
 * deliver anything; 300 and 304 name no single target.
 */
export const isFollowed = (status: number): boolean => followed.has(status)

/**
 * Returns the target of a redirect, `shown` without its query, or a clause that says why it is not
 * followed. The clause names the origin only: it is told where answers are not, and a path may
 * repeat what was sent. Whether the address is allowed is checked when the connection is made, as for any other
 * request.
 *
 * @param origins that it may lead to.
 */
export const redirected = (
  from: Target,
  location: unknown,
  origins: ReadonlyArray<string>
): (Target & { readonly shown: string }) | string => {
  if (location === undefined) return "a redirect without a location"
  if (typeof location !== "string" || !URL.canParse(location, from.url))
    return "a redirect whose location is not a URL"
  const url = new URL(location, from.url)
  if (url.protocol !== "https:" && url.protocol !== "http:")
    return `a redirect to ${url.protocol} instead of http or https`
  const shown = `a redirect to ${url.origin}`
  if (from.secure && url.protocol === "http:") return `${shown}, from https to http`
  if (url.username !== "" || url.password !== "") return `${shown} with credentials`
  if (!origins.includes(url.origin))
    return `${shown}, another origin, which \`redirectsTo\` does not name`
  return { ...targetOf(url), shown: `${url.origin}${url.pathname}` }
}
