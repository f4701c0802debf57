import { Result, Schema } from "effect"
import type { HeaderList } from "../../broker/publication.ts"
import { contentOf, eventId, idOfTenant } from "../../domain/event.ts"
import type { Problem } from "../../domain/problem.ts"
import { isToken } from "../../domain/token.ts"
import { eventTypeProblem } from "../../domain/type-filter.ts"
import { shownValue } from "../input-words.ts"

/** An event to be published, without its body. */
export const NewEvent = Schema.Struct({
  tenant: Schema.String.annotateKey({ description: "The name of the tenant." }),
  type: Schema.String.annotateKey({ description: "Such as `invoice.paid`." }),
  id: Schema.optional(Schema.String).annotateKey({
    description:
      "The same id within the deduplication window is the same event. Begins with the tenant and a dot, or else these are put before it. (Default: a new one)"
  }),
  contentType: Schema.optional(Schema.String).annotateKey({
    description: "(Default: application/json)"
  }),
  headers: Schema.optional(Schema.Record(Schema.String, Schema.String)).annotateKey({
    description: "Values by name, in any case. Receivers get only traceparent and tracestate."
  })
})
export type NewEvent = typeof NewEvent.Type

/** A valid event without its body. */
export interface CheckedEvent {
  readonly id: string
  readonly tenant: string
  readonly type: string
  readonly headers: HeaderList
  /** Headers that are stored with the event and not forwarded to receivers. */
  readonly unsent: ReadonlyArray<string>
}

const maxIdLength = 255

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/
const headerValue = /^[^\p{Cc}]*$/u

/** The expected form of each header that receivers get. */
const sent: Record<"content-type" | "traceparent" | "tracestate", string> = {
  "content-type": "must be 1 to 255 ASCII characters, such as application/json",
  traceparent: "must be such as 00-<32 hex digits>-<16 hex digits>-01",
  tracestate: "must be up to 512 ASCII characters, beside a traceparent"
}

/** Returns why a header cannot be stored with an event, or undefined. */
const headerProblem = (name: string, value: string): string | undefined => {
  if (!headerName.test(name)) return "must have a valid name"
  if (!headerValue.test(value)) return "must have a value on one line"
  return /^(nats|petrel)-/.test(name) ? "is a name that belongs to the broker or Petrel" : undefined
}

/** Returns the headers by their names in lower case. */
const headersOf = (
  { contentType, headers = {} }: NewEvent,
  problems: Array<Problem>
): ReadonlyMap<string, string> => {
  const found = new Map<string, string>()
  if (contentType !== undefined) found.set("content-type", contentType)
  for (const [given, value] of Object.entries(headers)) {
    const name = given.toLowerCase()
    const problem = found.has(name) ? "was given twice" : headerProblem(name, value)
    if (problem === undefined) found.set(name, value)
    else problems.push({ field: `headers.${name}`, message: problem })
  }
  return found
}

/**
 * Checks an event. Fails with all its problems.
 *
 * @param madeId the id of an event without one, without its tenant.
 */
export const checkEvent = (
  event: NewEvent,
  madeId: string
): Result.Result<CheckedEvent, ReadonlyArray<Problem>> => {
  const { tenant, type } = event
  const problems: Array<Problem> = []
  const refuse = (field: string, value: string, message: string) =>
    problems.push({ field, message: `${shownValue(value)} ${message}` })
  if (!isToken(tenant))
    refuse("tenant", tenant, "must be 1 to 64 letters, digits, - or _ (and not a lone _)")
  const typeProblem = eventTypeProblem(type)
  if (typeProblem !== undefined)
    refuse("type", type, `must be one such as invoice.paid: ${typeProblem}`)
  const id = idOfTenant(tenant, event.id ?? madeId)
  // A generated id is invalid only if the tenant is, which is reported already.
  if (event.id !== undefined && (event.id === "" || eventId(id, 0, 0) !== id)) {
    const most = maxIdLength - tenant.length - 1
    refuse("id", event.id, `must be 1 to ${most} ASCII characters without spaces`)
  }
  const headers = headersOf(event, problems)
  const content = contentOf((name) => headers.get(name))
  const carried = new Map<string, string | undefined>([
    ["content-type", content.contentType],
    ["traceparent", content.traceparent],
    ["tracestate", content.tracestate]
  ])
  for (const [name, expected] of Object.entries(sent)) {
    const value = headers.get(name)
    const isOwnField = name === "content-type" && event.contentType !== undefined
    if (value !== undefined && carried.get(name) === undefined)
      refuse(isOwnField ? "contentType" : `headers.${name}`, value, expected)
  }
  if (problems.length > 0) return Result.fail(problems)
  return Result.succeed({
    id,
    tenant,
    type,
    headers: [["Nats-Msg-Id", id], ...headers],
    unsent: [...headers.keys()].filter((name) => !carried.has(name))
  })
}
