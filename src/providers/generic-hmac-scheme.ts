/** How a sender signs by HMAC that is none of the known ones, and where its events say what they are. */
export interface GenericHmacScheme {
  /** The header with the signature, such as `x-acme-signature`. */
  readonly header: string
  /** What stands before the signature in its header, such as `sha256=`. */
  readonly prefix?: string
  /** (Default: sha256) */
  readonly algorithm?: "sha1" | "sha256" | "sha512"
  /** How the signature is written; hexadecimal digits may be of either case. (Default: hex) */
  readonly encoding?: "hex" | "base64"
  /** How secrets are written. (Default: utf8, they are used as they are) */
  readonly secretEncoding?: "utf8" | "hex" | "base64"
  /**
   * What is signed, with `{body}` once, and any of `{timestamp}`, `{id}`, `{url}` and `{method}`,
   * such as `{timestamp}.{body}`. (Default: {body})
   */
  readonly signed?: string
  /** The header that `{timestamp}` stands for. */
  readonly timestampHeader?: string
  /** Of the timestamp. (Default: s) */
  readonly timestampUnit?: "s" | "ms"
  /** `header:NAME`, or `body:PATH` with dots in a JSON body, such as `body:data.id`. */
  readonly id?: string
  /** Likewise. (Default: all events are of the type `webhook`) */
  readonly type?: string
  /** Likewise: a time in ISO 8601, or in seconds. */
  readonly at?: string
  /** Likewise. */
  readonly subject?: string
}

export type SchemePart = "body" | "timestamp" | "id" | "url" | "method"

const part = /\{(body|timestamp|id|url|method)\}/

/** Returns what is signed in turn: texts, and parts of the request. */
export const signedParts = (
  template: string
): ReadonlyArray<{ readonly text: string } | { readonly part: SchemePart }> =>
  template
    .split(part)
    .map((text, place) => (place % 2 === 0 ? { text } : { part: text as SchemePart }))
    .filter((one) => "part" in one || one.text !== "")

const headerName = /^[a-z0-9!#$%&'*+.^_`|~-]{1,100}$/
const placeForm = /^(header:[a-z0-9!#$%&'*+.^_`|~-]{1,100}|body:[^.]+(\.[^.]+)*)$/

/** What each field may hold: one of these words, or a text of which nothing is known. */
const fields: { readonly [Name in keyof Required<GenericHmacScheme>]: ReadonlyArray<string> } = {
  header: [],
  prefix: [],
  algorithm: ["sha1", "sha256", "sha512"],
  encoding: ["hex", "base64"],
  secretEncoding: ["utf8", "hex", "base64"],
  signed: [],
  timestampHeader: [],
  timestampUnit: ["s", "ms"],
  id: [],
  type: [],
  at: [],
  subject: []
}

const fieldProblem = (name: string, value: unknown): string | undefined => {
  if (!Object.hasOwn(fields, name)) return `has a field "${name}", which is unknown`
  const words = fields[name as keyof GenericHmacScheme]
  if (value === undefined) return undefined
  if (typeof value !== "string") return `must have a text in its "${name}"`
  return words.length === 0 || words.includes(value)
    ? undefined
    : `must have one of ${words.join(", ")} in its "${name}"`
}

/** Returns what is wrong with a description, as the rest of a sentence. */
export const schemeProblem = (value: unknown): string | undefined => {
  if (typeof value !== "object" || value === null) return 'must be an object with a "header"'
  for (const [name, field] of Object.entries(value)) {
    const found = fieldProblem(name, field)
    if (found !== undefined) return found
  }
  const scheme = value as GenericHmacScheme
  for (const name of ["header", "timestampHeader"] as const) {
    const header = scheme[name]
    if (header === undefined ? name === "header" : !headerName.test(header))
      return `must have the name of a header in lower case in its "${name}"`
  }
  for (const name of ["id", "type", "at", "subject"] as const) {
    const place = scheme[name]
    if (place !== undefined && !placeForm.test(place))
      return `must have header:NAME in lower case or body:PATH in its "${name}"`
  }
  const parts = signedParts(scheme.signed ?? "{body}").flatMap((one) =>
    "part" in one ? [one.part] : []
  )
  if (parts.filter((one) => one === "body").length !== 1)
    return 'must have {body} once in its "signed"'
  if (parts.includes("timestamp") !== (scheme.timestampHeader !== undefined))
    return 'must have {timestamp} in its "signed" and the header in its "timestampHeader", or neither'
  if (parts.includes("id") && scheme.id?.startsWith("header:") !== true)
    return 'must say in its "id" which header {id} stands for'
  return undefined
}
