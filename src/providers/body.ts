import type { ProviderEvent, Reading, ReceivedRequest } from "./provider.ts"

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** Returns a body as text; undefined if it is not UTF-8. */
export const bodyText = (body: Uint8Array): string | undefined => {
  try {
    return utf8.decode(body)
  } catch {
    return undefined
  }
}

/** Returns a body's JSON; undefined if it is none. */
export const bodyJson = (body: Uint8Array): unknown => {
  const text = bodyText(body)
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns what a path of names leads to; undefined where there is nothing. */
export const valueAt = (value: unknown, ...path: ReadonlyArray<string>): unknown => {
  let here = value
  for (const name of path) {
    if (typeof here !== "object" || here === null || !Object.hasOwn(here, name)) return undefined
    here = (here as Record<string, unknown>)[name]
  }
  return here
}

/** Returns a text or a number at a path, as a text that is not empty. */
export const textAt = (value: unknown, ...path: ReadonlyArray<string>): string | undefined => {
  const found = valueAt(value, ...path)
  if (typeof found === "number") return String(found)
  return typeof found === "string" && found !== "" ? found : undefined
}

/** A date with a time and no zone, which Date.parse takes for one of this machine's zone. */
const withoutZone = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?$/

/**
 * Returns the time at a path, in ms: of an ISO 8601 text, which is in UTC where it names no zone, or
 * of a number in `unit`.
 */
export const momentAt = (
  value: unknown,
  unit: "s" | "ms",
  ...path: ReadonlyArray<string>
): number | undefined => {
  const found = valueAt(value, ...path)
  const at =
    typeof found === "number"
      ? Math.round(unit === "s" ? found * 1_000 : found)
      : typeof found === "string"
        ? Date.parse(withoutZone.test(found) ? `${found}Z` : found)
        : Number.NaN
  return Number.isFinite(at) ? at : undefined
}

/** Returns the request's content type without its parameters, in lower case. */
export const mediaTypeOf = ({ headers }: ReceivedRequest): string =>
  (headers["content-type"] ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? ""

const contentTypeOf = ({ headers }: ReceivedRequest): string =>
  headers["content-type"] ?? "application/octet-stream"

/** Like ProviderEvent before its bytes are known; what was not found may be undefined. */
export interface FoundEvent {
  readonly id?: string | undefined
  readonly type: string
  readonly at?: number | undefined
  readonly subject?: string | undefined
}

/** Returns an event with what was found. */
export const eventOf = (
  { at, id, subject, type }: FoundEvent,
  body: Uint8Array,
  contentType: string
): ProviderEvent => ({
  type,
  body,
  contentType,
  ...(id !== undefined && { id }),
  ...(at !== undefined && { at }),
  ...(subject !== undefined && { subject })
})

/** Returns the one event that a request is. */
export const wholeBody = (request: ReceivedRequest, found: FoundEvent): Reading => ({
  ok: true,
  events: [eventOf(found, request.body, contentTypeOf(request))]
})

export const unreadable = (text: string): Reading => ({ ok: false, text })

/**
 * Reads a request whose body is one JSON object.
 *
 * @param title the provider's, for the sentence about what is no object or has no type.
 * @param typeIn where the type is looked for, for that sentence.
 */
export const readObject = (
  request: ReceivedRequest,
  title: string,
  typeIn: string,
  find: (json: object) => Omit<FoundEvent, "type"> & { readonly type: string | undefined }
): Reading => {
  const json = bodyJson(request.body)
  if (typeof json !== "object" || json === null || Array.isArray(json))
    return unreadable(`The body is not a JSON object, as ${title} sends them.`)
  const { type, ...others } = find(json)
  return type === undefined
    ? unreadable(`The request has no type: ${title} has it in ${typeIn}.`)
    : wholeBody(request, { ...others, type })
}
