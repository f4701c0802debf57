/**
 * How the webhooks that a provider has sent, or should have, are asked for at its API. Pure: a
 * listing says which requests to make and reads their answers; `api.ts` makes them.
 */
import type { ReceivedRequest } from "../provider.ts"

/** A request to an API. */
export interface ApiRequest {
  /** (Default: GET) */
  readonly method?: "GET" | "POST"
  /** Below the API's URL, with its query: `/v1/events?limit=100`. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** An answer with a status of 2xx. */
export interface ApiAnswer {
  /** By name in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: Uint8Array
  /** Undefined where the body is not JSON. */
  readonly json: unknown
}

/** What is asked for. Times in ms since the epoch, both inclusive. */
export interface Asked {
  readonly since: number
  readonly until: number
  /** Which webhook of the provider's, in the form of `Listing.webhook`; "" where none is named. */
  readonly webhook: string
}

/** A webhook as its provider would have sent it, without a signature. */
export type Carried = Pick<ReceivedRequest, "headers" | "body">

/** An event that a provider lists. */
export interface Listed {
  /** The id under which it comes in. */
  readonly id: string
  /** When it happened, ms since the epoch by the provider's clock. */
  readonly at?: number | undefined
  /** The provider's own word. */
  readonly type?: string | undefined
  /** Where the list has all of it. */
  readonly carried?: Carried | undefined
  /** How the API names it, where that is not `id`. */
  readonly ref?: string | undefined
  /** Which state of something it is, where the API lists no webhooks. */
  readonly state?: State | undefined
}

/** Something as it was since a time, ms since the epoch. */
export interface State {
  readonly of: string
  readonly at: number
}

export interface Page {
  readonly listed: ReadonlyArray<Listed>
  /** What the request for the next page needs; undefined at the last one. */
  readonly next?: string | undefined
}

/** Which webhook is meant, where a provider's API needs to be told. */
export interface WebhookForm {
  readonly isRequired: boolean
  readonly form: RegExp
  /** What it is, as a part of a sentence, and one such. */
  readonly text: string
  readonly example: string
}

export interface Listing {
  /** As the provider writes its name. */
  readonly title: string
  /** The API's URL; undefined where everybody has another. */
  readonly url?: string
  readonly webhook: WebhookForm
  /** The credentials, as a part of a sentence. */
  readonly key: string
  /** For how long the provider lists an event, ms. */
  readonly keepsMs: number
  /** Requests that are sent at most. */
  readonly perSecond: number
  /** For the table in docs/reference/providers.md, in a few words. */
  readonly words: { readonly listed: string; readonly comes: string }
  /** Headers that authenticate a request. */
  readonly authorize: (key: string) => Readonly<Record<string, string>>
  /** Where the key is exchanged for a token first: how, and the key to use then. */
  readonly login?: {
    readonly request: (key: string) => ApiRequest
    readonly token: (answer: ApiAnswer) => string | undefined
  }
  /** How the types are learned that the webhook gets, where the list has others, too. */
  readonly subscription?: {
    /** Undefined where no webhook is named. */
    readonly request: (asked: Asked) => ApiRequest | undefined
    /** Types, or `*` for all; undefined for an answer of another shape. */
    readonly types: (answer: ApiAnswer) => ReadonlyArray<string> | undefined
  }
  /** @param cursor `next` of the page before; undefined for the first. */
  readonly page: (asked: Asked, cursor: string | undefined) => ApiRequest
  /** Undefined for an answer of another shape than the provider documents. */
  readonly read: (answer: ApiAnswer, asked: Asked, cursor: string | undefined) => Page | undefined
  /** How an event is fetched that the list has not all of. */
  readonly fetch?: {
    readonly request: (asked: Asked, listed: Listed) => ApiRequest
    readonly carried: (answer: ApiAnswer) => Carried | undefined
  }
  /**
   * Where the API lists what things are now, and no webhooks: how it is told whether an event that
   * came in had this state of something, or a later one.
   */
  readonly states?: {
    /** @param type the provider's own word, of an event that came in. */
    readonly isOf: (type: string, asked: Asked) => boolean
    /** Undefined for a body of another shape. */
    readonly stateOf: (body: unknown) => State | undefined
  }
  /** How the provider is asked to send one again that cannot be fetched. */
  readonly resend?: (asked: Asked, listed: Listed) => ApiRequest
}

/** Returns headers with names in lower case, as a webhook's are read. */
export const carriedHeaders = (given: unknown): Carried["headers"] => {
  const headers: Record<string, string> = {}
  if (typeof given === "object" && given !== null)
    for (const [name, value] of Object.entries(given))
      if (typeof value === "string") headers[name.toLowerCase()] = value
  return headers
}

export const jsonHeaders = { "content-type": "application/json" }

/** Returns a query of the values that are there, in which brackets of names stay as they are. */
export const queryOf = (values: Readonly<Record<string, string | number | undefined>>): string =>
  Object.entries(values)
    .flatMap(([name, value]) =>
      value === undefined ? [] : [`${name}=${encodeURIComponent(String(value))}`]
    )
    .join("&")

export const isoTime = (at: number): string => new Date(at).toISOString()
export const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
export const basic = (key: string) => ({
  authorization: `Basic ${Buffer.from(key).toString("base64")}`
})
