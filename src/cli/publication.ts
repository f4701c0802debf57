import { Result } from "effect"
import type { HeaderList } from "../broker/publisher.ts"
import { contentOf, eventId } from "../domain/event.ts"
import { isToken } from "../domain/token.ts"
import { eventTypeProblem } from "../domain/type-filter.ts"

/** The command line's input about an event, as text. */
export interface PublishFlags {
  readonly tenant: string
  readonly type: string
  readonly id: string | undefined
  readonly contentType: string | undefined
  /** `name: value` each. */
  readonly header: ReadonlyArray<string>
}

/** A valid event without its bytes. */
export interface Publication {
  readonly id: string
  readonly tenant: string
  readonly type: string
  readonly headers: HeaderList
  /** Headers that are stored with the event and not forwarded to receivers. */
  readonly unsent: ReadonlyArray<string>
}

const maxIdLength = 255

/**
 * Returns the id for the broker's deduplication. It begins with the tenant, because deduplication
 * covers all tenants: without it, equal ids of two tenants would be one event. A dot follows, which
 * no tenant contains.
 */
const idOf = (tenant: string, given: string): string =>
  given.startsWith(`${tenant}.`) ? given : `${tenant}.${given}`

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/
const headerValue = /^[^\p{Cc}]*$/u

/** The expected form of each header that receivers get. */
const sent: Record<"content-type" | "traceparent" | "tracestate", string> = {
  "content-type": "must be 1 to 255 ASCII characters, such as application/json",
  traceparent: "must be such as 00-<32 hex digits>-<16 hex digits>-01",
  tracestate: "must be up to 512 ASCII characters, beside a traceparent"
}

/**
 * Validates the flags.
 *
 * @param madeId the id of an event without `--id`, without its tenant.
 */
export const publication = (
  flags: PublishFlags,
  madeId: string
): Result.Result<Publication, ReadonlyArray<string>> => {
  const { tenant, type } = flags
  const problems: Array<string> = []
  if (!isToken(tenant))
    problems.push(
      `TENANT ${JSON.stringify(tenant)} must be 1 to 64 letters, digits, - or _ (and not a lone _)`
    )
  const typeProblem = eventTypeProblem(type)
  if (typeProblem !== undefined)
    problems.push(`TYPE ${JSON.stringify(type)} must be one such as invoice.paid: ${typeProblem}`)
  const id = idOf(tenant, flags.id ?? madeId)
  // A generated id is invalid only if the tenant is, which is reported already.
  if (flags.id !== undefined && (flags.id === "" || eventId(id, 0, 0) !== id))
    problems.push(
      `--id ${JSON.stringify(flags.id)} must be 1 to ${maxIdLength - tenant.length - 1} ASCII characters without spaces`
    )

  const headers = new Map<string, string>()
  if (flags.contentType !== undefined) headers.set("content-type", flags.contentType)
  for (const line of flags.header) {
    const colon = line.indexOf(":")
    const name = line.slice(0, Math.max(colon, 0)).trim().toLowerCase()
    const value = line.slice(colon + 1).trim()
    if (!headerName.test(name) || !headerValue.test(value))
      problems.push(`--header ${JSON.stringify(line)} must be 'name: value'`)
    else if (/^(nats|petrel)-/.test(name))
      problems.push(
        `--header ${JSON.stringify(name)} is a name that belongs to the broker or Petrel`
      )
    else if (headers.has(name)) problems.push(`the header ${name} was given twice`)
    else headers.set(name, value)
  }
  const content = contentOf((name) => headers.get(name))
  const carried = new Map<string, string | undefined>([
    ["content-type", content.contentType],
    ["traceparent", content.traceparent],
    ["tracestate", content.tracestate]
  ])
  for (const [name, expected] of Object.entries(sent))
    if (headers.has(name) && carried.get(name) === undefined)
      problems.push(`the header ${name} ${JSON.stringify(headers.get(name))} ${expected}`)

  if (problems.length > 0) return Result.fail(problems)
  return Result.succeed({
    id,
    tenant,
    type,
    headers: [["Nats-Msg-Id", id], ...headers],
    unsent: [...headers.keys()].filter((name) => !carried.has(name))
  })
}
