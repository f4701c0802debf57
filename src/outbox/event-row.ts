import { eventTypeProblem, isToken, tokenExpected } from "../domain/token-rules.ts"

/** An event that is to be published once the transaction that enqueues it has committed. */
export interface OutboxEvent {
  readonly tenant: string
  /** Such as `invoice.paid`. */
  readonly type: string
  /** Bytes and texts are sent to receivers as they are. Any other value is sent as JSON. */
  readonly body: unknown
  /**
   * The event's own id within its tenant. The same id is one event, however often it is enqueued.
   * (Default: a random one)
   */
  readonly id?: string | undefined
  /** (Default: application/json) */
  readonly contentType?: string | undefined
  /** The W3C trace context that receivers get. */
  readonly traceparent?: string | undefined
  readonly tracestate?: string | undefined
}

/** A row of an outbox, as it is inserted. */
export interface OutboxRow {
  readonly tenant: string
  readonly id: string
  readonly type: string
  readonly contentType: string
  readonly body: Uint8Array
  readonly traceparent: string | undefined
  readonly tracestate: string | undefined
}

/**
 * Largest body of an event, bytes: a broker with the usual max_payload of 1 MiB takes it together
 * with its headers.
 */
export const maxBodyBytes = 950 * 1024

const idPattern = /^[\x21-\x7e]{1,128}$/
const contentTypePattern = /^[\x20-\x7e]{1,255}$/
const traceparentPattern = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/
const tracestatePattern = /^[\x20-\x7e]{1,512}$/

/** Returns why a row of whatever size could never be published, as one sentence, or undefined. */
export const rowProblem = ({
  contentType,
  id,
  tenant,
  traceparent,
  tracestate,
  type
}: Omit<OutboxRow, "body">): string | undefined => {
  if (!isToken(tenant)) return `the tenant ${JSON.stringify(tenant.slice(0, 80))} ${tokenExpected}`
  const typeProblem = eventTypeProblem(type)
  if (typeProblem !== undefined) return typeProblem
  if (!idPattern.test(id))
    return `the id ${JSON.stringify(id.slice(0, 80))} must be 1 to 128 printable ASCII characters without spaces`
  if (!contentTypePattern.test(contentType))
    return "the content type must be 1 to 255 printable ASCII characters"
  if (traceparent !== undefined && !traceparentPattern.test(traceparent))
    return "traceparent is not of the form that W3C Trace Context gives it"
  if (tracestate !== undefined && !tracestatePattern.test(tracestate))
    return "tracestate must be 1 to 512 printable ASCII characters"
  return undefined
}

const textEncoder = new TextEncoder()

const bytesOf = (body: unknown): Uint8Array => {
  if (body instanceof Uint8Array) return body
  if (typeof body === "string") return textEncoder.encode(body)
  let text: string | undefined
  try {
    text = JSON.stringify(body)
  } catch (error) {
    throw new TypeError(
      `the body cannot be written as JSON: ${error instanceof Error ? error.message : error}`
    )
  }
  if (text === undefined) throw new TypeError("the body is missing: give bytes, a text or a value")
  return textEncoder.encode(text)
}

const stringOf = (name: string, value: unknown): string => {
  if (typeof value === "string") return value
  throw new TypeError(
    `the ${name} must be a string: it is ${value === null ? "null" : typeof value}`
  )
}

const optionalOf = (name: string, value: unknown): string | undefined =>
  value === undefined ? undefined : stringOf(name, value)

/**
 * Returns the row of an event.
 *
 * @throws TypeError with one sentence if it could never be published.
 */
export const rowOf = (event: OutboxEvent, mostBytes: number): OutboxRow => {
  const row: OutboxRow = {
    tenant: stringOf("tenant", event.tenant),
    id: optionalOf("id", event.id) ?? crypto.randomUUID(),
    type: stringOf("type", event.type),
    contentType: optionalOf("content type", event.contentType) ?? "application/json",
    body: bytesOf(event.body),
    traceparent: optionalOf("traceparent", event.traceparent),
    tracestate: optionalOf("tracestate", event.tracestate)
  }
  const problem = rowProblem(row)
  if (problem !== undefined) throw new TypeError(problem)
  const { byteLength } = row.body
  if (byteLength > mostBytes)
    throw new TypeError(
      `the body has ${byteLength} bytes, more than the ${mostBytes} that an event may have: publish a link to the data instead`
    )
  return row
}
