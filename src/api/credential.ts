import { Context } from "effect"
import type { TokenScope } from "../operations/token.ts"

/** Who asks without a token, because something else has authorised the request. */
export interface InsiderRecord {
  readonly tenant: string
  readonly scopes: ReadonlyArray<TokenScope>
  /** Who asks, as the history records it. */
  readonly by: string
}

/** The insider that a request is from; undefined for requests that came over HTTP. */
export const Insider = Context.Reference<InsiderRecord | undefined>("petrel/api/Insider", {
  defaultValue: () => undefined
})

/** A request, as far as it tells who asks. */
interface Asked {
  readonly method: string
  readonly headers: Readonly<Record<string, string | undefined>>
}

const bearer = /^Bearer +(\S+)$/i

/** Returns the token in a header Authorization; empty if it holds none. */
export const bearerIn = (authorization: string | undefined): string =>
  bearer.exec(authorization ?? "")?.[1] ?? ""

/**
 * Returns the name of a console's cookie. Browsers take one with `__Host-` only over TLS, for this
 * very host and path; without it the port tells consoles of one machine apart, since cookies do not.
 *
 * @param host the header Host of a request.
 */
const cookieName = (isSecure: boolean, host: string): string =>
  isSecure ? "__Host-petrel" : `petrel${/:\d+$/.exec(host)?.[0].replace(":", "-") ?? ""}`

/** Returns the value of the header Set-Cookie that keeps a session, or ends it if it is empty. */
export const sessionCookie = (isSecure: boolean, host: string, token: string): string =>
  [
    `${cookieName(isSecure, host)}=${token}`,
    "Path=/",
    "HttpOnly",
    "SameSite=Strict",
    ...(isSecure ? ["Secure"] : []),
    ...(token === "" ? ["Max-Age=0"] : [])
  ].join("; ")

/**
 * Returns the token of a session in a request's cookies; empty if there is none, or if another site
 * has sent the request: a browser says which one did (Fetch Metadata), and a browser that does not say
 * it is not believed.
 */
const cookieIn = (isSecure: boolean, { headers, method }: Asked): string => {
  const site = headers["sec-fetch-site"]
  const isOwn = site === "same-origin" || (site === "none" && method === "GET")
  if (!isOwn) return ""
  const prefix = `${cookieName(isSecure, headers.host ?? "")}=`
  const pairs = (headers.cookie ?? "").split(";").map((pair) => pair.trim())
  return pairs.find((pair) => pair.startsWith(prefix))?.slice(prefix.length) ?? ""
}

/** What a request shows for itself. */
export interface Credential {
  /** A token; empty if there is none. */
  readonly token: string
  /** True if it is in a cookie, which browsers send by themselves. */
  readonly isCookie: boolean
}

/** Returns what a request shows for itself: its token or else, in a browser, its session. */
export const credentialOf = (isSecure: boolean, asked: Asked): Credential => {
  const token = bearerIn(asked.headers.authorization)
  return token === ""
    ? { token: cookieIn(isSecure, asked), isCookie: true }
    : { token, isCookie: false }
}
