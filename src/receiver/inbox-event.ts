import { type NewEntry, PermanentError } from "./entry.ts"

/** An event as its work gets it. Times are in ms since 1970. */
export interface InboxEvent {
  readonly source: string
  /** What the inbox knows the event by. The same at each repeat and attempt: use it for calls of other services. */
  readonly key: string
  /** The sender's id. Undefined where it gives none. */
  readonly id: string | undefined
  readonly type: string
  readonly subject: string | undefined
  readonly version: number | undefined
  /** When it happened, by the sender's clock. */
  readonly at: number | undefined
  /** 1 for the first attempt of this work. */
  readonly attempt: number
  /** By name in lower case, without signatures and credentials. */
  readonly headers: Readonly<Record<string, string>>
  readonly contentType: string
  /** The bytes as they came. */
  readonly body: Uint8Array
  /** The body as text. */
  readonly text: string
  /**
   * The body, parsed as JSON.
   *
   * @throws PermanentError if it is none.
   */
  // biome-ignore lint/suspicious/noExplicitAny: it is whatever the sender sends
  readonly data: any
  /** Aborted when the work has taken longer than it may, or the receiver stops. */
  readonly signal: AbortSignal
}

/** Where the sender's id is stored, beside the headers: the key may be another one. */
const idHeader = ":id"

/** Returns the headers to be stored of an event. */
export const withId = (
  headers: Readonly<Record<string, string>>,
  id: string | undefined
): Readonly<Record<string, string>> => (id === undefined ? headers : { ...headers, [idHeader]: id })

const withoutId = ({
  [idHeader]: _id,
  ...headers
}: Readonly<Record<string, string>>): Readonly<Record<string, string>> => headers

const parsed = (body: Uint8Array): unknown => {
  try {
    return JSON.parse(new TextDecoder().decode(body))
  } catch (cause) {
    const text = "the event's body is not JSON: use event.body or event.text"
    throw new PermanentError(text, { cause })
  }
}

/** Makes what the work gets of an entry. */
export const inboxEvent = (
  entry: Omit<NewEntry, "keepMs" | "type"> & { readonly type: string },
  attempt: number,
  signal: AbortSignal
): InboxEvent => {
  const { at, body, contentType, headers, key, source, subject, type, version } = entry
  let data: { readonly value: unknown } | undefined
  return {
    ...{ source, key, id: headers[idHeader], type, subject, version, at, attempt },
    headers: withoutId(headers),
    ...{ contentType, body, signal },
    get text() {
      return new TextDecoder().decode(body)
    },
    get data() {
      data ??= { value: parsed(body) }
      return data.value
    }
  }
}
