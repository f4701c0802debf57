import type { ProviderEvent, ReceivedRequest } from "../providers/provider.ts"
import { errorText, isPlain, type NewEntry, sha256, storable } from "./entry.ts"
import { withId } from "./inbox-event.ts"
import type { CompiledSource, ReadableEvent } from "./settings.ts"

/** What a verified request is to the inbox. */
export type ReadRequest =
  | { readonly ok: true; readonly entries: ReadonlyArray<NewEntry & { readonly type: string }> }
  /** The request as it came, to be read again after a fix. */
  | { readonly ok: false; readonly entry: NewEntry; readonly reason: string }

/** Headers that are, or may be, secrets or signatures. */
const secretHeader =
  /signature|authorization|cookie|(?<!idempotency-)token|secret|api-?key|hmac|x-goog-iap/

const roundHeader = "petrel-round"

/** Returns the headers that may be stored. */
const storedHeaders = (headers: ReceivedRequest["headers"]): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || secretHeader.test(name) ? [] : [[name, value] as const]
    )
  )

/** Where the method and the URL of an unreadable request are stored, beside its headers. */
const methodHeader = ":method"
const urlHeader = ":url"

/** Headers that differ from one sending of a request to the next. */
const passingHeader =
  /^(date|host|connection|traceparent|tracestate|via|forwarded|user-agent)$|^x-forwarded|time|retr|attempt/

/**
 * What makes two unreadable requests the same: all that is stored of them, but what differs with each sending. Two that
 * have the same body may still be two events.
 */
const unreadableKey = (source: CompiledSource, { body, headers, url }: ReceivedRequest): string => {
  const steady = Object.entries(storedHeaders(headers)).filter(
    ([name]) => !passingHeader.test(name)
  )
  return `unreadable:${sha256(JSON.stringify([source.name, url, steady.sort(), sha256(body)]))}`
}

const unreadable = (
  source: CompiledSource,
  request: ReceivedRequest,
  reason: string
): ReadRequest => ({
  ok: false,
  reason,
  entry: {
    source: source.name,
    key: unreadableKey(source, request),
    ...{ type: undefined, subject: undefined, version: undefined, at: undefined },
    headers: {
      ...storedHeaders(request.headers),
      [methodHeader]: request.method,
      [urlHeader]: request.url
    },
    contentType: (request.headers["content-type"] ?? "application/octet-stream").slice(0, 200),
    body: request.body,
    keepMs: source.keepMs
  }
})

/** Returns the request of an entry that could not be read. */
export const requestOf = (
  headers: Readonly<Record<string, string>>,
  body: Uint8Array
): ReceivedRequest => {
  const { [methodHeader]: method = "POST", [urlHeader]: url = "/", ...rest } = headers
  return { method, url, headers: rest, body }
}

const readableEvent = (
  source: CompiledSource,
  request: ReceivedRequest,
  event: ProviderEvent
): ReadableEvent => ({
  ...event,
  source: source.name,
  headers: request.headers,
  get data() {
    return JSON.parse(new TextDecoder().decode(event.body))
  }
})

const payloadKey = (body: Uint8Array): string => `payload:${sha256(body)}`

const keyOf = (source: CompiledSource, event: ReadableEvent): string => {
  const { key } = source
  if (key === "payload") return payloadKey(event.body)
  if (key === "id") return event.id ?? payloadKey(event.body)
  const made = key(event)
  if (typeof made !== "string" || made === "")
    throw new TypeError("the function `key` must return a text that is not empty")
  return made
}

const versionOf = (source: CompiledSource, event: ReadableEvent): number | undefined => {
  const version = source.version?.(event)
  if (version === undefined || version === null) return undefined
  if (!Number.isSafeInteger(version))
    throw new TypeError(`the function \`version\` must return a whole number, not ${version}`)
  return version
}

const subjectOf = (source: CompiledSource, event: ReadableEvent): string | undefined => {
  const subject = source.subject === undefined ? event.subject : source.subject(event)
  return subject === undefined || subject === null || subject === ""
    ? undefined
    : storable(`${subject}`)
}

/** A replay is a round of its own: the application has said that it takes it again. */
const withRound = (source: CompiledSource, request: ReceivedRequest, key: string): string => {
  const round = request.headers[roundHeader]
  return source.takeReplays && round !== undefined ? `${key}/${round}` : key
}

/** A time of the sender's, unless it is one that no calendar has. */
const storedTime = (at: number | undefined): number | undefined => {
  const rounded = Math.round(at ?? Number.NaN)
  return Math.abs(rounded) <= 8.64e15 ? rounded : undefined
}

const entryOf = (
  source: CompiledSource,
  request: ReceivedRequest,
  event: ProviderEvent
): NewEntry & { readonly type: string } => {
  if (!isPlain(event.type))
    throw new TypeError("its type is empty, longer than 200 characters or has control characters")
  const readable = readableEvent(source, request, event)
  return {
    source: source.name,
    key: storable(withRound(source, request, keyOf(source, readable))),
    type: event.type,
    subject: subjectOf(source, readable),
    version: versionOf(source, readable),
    at: storedTime(event.at),
    headers: withId(storedHeaders(request.headers), event.id),
    contentType: event.contentType.slice(0, 200),
    body: event.body,
    keepMs: source.keepMs
  }
}

/** Reads a verified request. What cannot be read becomes one entry that keeps all of it. Never throws. */
export const readRequest = (source: CompiledSource, request: ReceivedRequest): ReadRequest => {
  try {
    const reading = source.provider.read(request)
    if (!reading.ok) return unreadable(source, request, reading.text)
    return { ok: true, entries: reading.events.map((event) => entryOf(source, request, event)) }
  } catch (error) {
    return unreadable(source, request, errorText(error))
  }
}
