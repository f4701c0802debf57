import { HttpServerResponse } from "effect/http"

/** Headers of a request that pages may send. */
const asked = [
  "authorization",
  "content-type",
  "idempotency-key",
  "if-match",
  "if-none-match",
  "last-event-id",
  "traceparent",
  "tracestate"
]

/** Headers of an answer that pages may read, in addition to those that they always may. */
const shown = [
  "accept-encoding",
  "allow",
  "etag",
  "idempotency-replayed",
  "location",
  "ratelimit",
  "ratelimit-policy",
  "retry-after",
  "www-authenticate"
]

/** How long a browser may remember what pages may ask, s: some ask anew after 10 minutes anyway. */
const rememberedSeconds = 600

/** Reads an origin as browsers send it: `https://app.example.com`; undefined for anything else. */
export const readOrigin = (text: string): string | undefined => {
  if (!URL.canParse(text)) return undefined
  const { hash, host, origin, password, pathname, protocol, search, username } = new URL(text)
  const isWeb = protocol === "http:" || protocol === "https:"
  const hasMore = pathname !== "/" || search !== "" || hash !== "" || username + password !== ""
  return isWeb && !hasMore && !host.includes("*") ? origin : undefined
}

/** The parts of a request that matter here. */
interface Asked {
  readonly method: string
  readonly headers: Readonly<Record<string, string | undefined>>
}

/**
 * Lets pages of some origins ask (CORS), with a token and never with cookies: no answer allows
 * credentials. Without origins no answer says anything of it.
 */
export class CrossOrigin {
  readonly #origins: ReadonlySet<string>

  /** @param origins as `readOrigin` returns them. */
  constructor(origins: ReadonlyArray<string> = []) {
    this.#origins = new Set(origins)
  }

  /** Answers what a browser asks before it sends a page's request; undefined for any other request. */
  preflight(
    { headers, method }: Asked,
    methodsOf: () => ReadonlyArray<string>
  ): HttpServerResponse.HttpServerResponse | undefined {
    const { "access-control-request-method": wanted, origin } = headers
    if (method !== "OPTIONS" || wanted === undefined) return undefined
    if (origin === undefined || !this.#origins.has(origin)) return undefined
    const methods = methodsOf()
    if (methods.length === 0) return undefined
    return HttpServerResponse.empty({
      status: 204,
      headers: {
        "access-control-allow-methods": methods.join(", "),
        "access-control-allow-headers": asked.join(", "),
        "access-control-max-age": String(rememberedSeconds)
      }
    })
  }

  /** Returns headers of an answer: that a page of the request's origin may read it. */
  headersFor({ origin }: Asked["headers"]): Readonly<Record<string, string>> {
    if (this.#origins.size === 0) return {}
    return {
      vary: "Origin",
      ...(origin === undefined || !this.#origins.has(origin)
        ? {}
        : {
            "access-control-allow-origin": origin,
            "access-control-expose-headers": shown.join(", ")
          })
    }
  }
}
