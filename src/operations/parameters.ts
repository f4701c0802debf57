import { Effect, Option, Schema, SchemaTransformation } from "effect"
import { documentedAs } from "../domain/documented-check.ts"
import type { EndpointName } from "../domain/endpoint.ts"
import { Invalid, invalid, type Problem } from "../domain/problem.ts"
import { Token } from "../domain/token.ts"
import { allTenants } from "./token.ts"

const tenantText = "The tenant, which owns events and endpoints."

/** The path of what belongs to a tenant. */
export const tenantPath = "/v1/tenants/:tenant"

export const Tenant = Token.annotateKey({ description: tenantText, examples: ["acme"] })

/** A tenant, or `*` for all of them. */
export const TenantOrAll = Schema.Union([Schema.Literal(allTenants), Token]).annotateKey({
  description: `${tenantText} \`*\`: all tenants, with a token of all of them.`,
  examples: ["acme"]
})

export const EndpointId = Token.annotateKey({
  description: "The endpoint's id within its tenant.",
  examples: ["billing"]
})

/**
 * A name in a path. A URL has no empty one, and takes one or two dots for a step: that no request
 * can have these, only the document says.
 */
export const PathText = Schema.String.check(documentedAs({ pattern: "[^.]" }))

export const EventId = PathText.annotateKey({
  description: "The event's id, as receivers get it.",
  examples: ["acme.invoice-42-paid"]
})

export const DeliveryId = PathText.annotateKey({
  description: "The delivery's id, <event id>.<endpoint id>.",
  examples: ["acme.invoice-42-paid.billing"]
})

/** The upper bound of a page. */
export const maxLimit = 200
/** The length of a page that is not asked for. */
export const defaultLimit = 50

/**
 * A whole number from 1 on, as a text of decimal digits. JavaScript takes `0x10` and `1e2` for numbers,
 * too, which nobody means here.
 *
 * @param maximum (Default: none)
 */
export const wholeNumber = (maximum = Number.MAX_SAFE_INTEGER) =>
  Schema.String.check(
    Schema.makeFilter((text: string) =>
      /^\d{1,16}$/.test(text)
        ? undefined
        : `must be a whole number from 1 ${maximum === Number.MAX_SAFE_INTEGER ? "on" : `to ${maximum}`}`
    )
  ).pipe(
    Schema.decodeTo(
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum })),
      SchemaTransformation.numberFromString
    )
  )

const Limit = wholeNumber(maxLimit).annotateKey({
  description: `How many at most, 1 to ${maxLimit}. (Default: ${defaultLimit})`,
  examples: [defaultLimit]
})

/** How a page is asked for. */
export const pageQuery = {
  limit: Schema.optionalKey(Limit),
  cursor: Schema.optionalKey(
    Schema.String.annotateKey({ description: "Where the page begins: `next` of the page before." })
  )
}

/** Where the next page begins. */
export const next = Schema.optionalKey(Schema.String).annotateKey({
  description: "The `cursor` of the next page; absent at the end."
})

/** Where the page before begins. */
export const previous = Schema.optionalKey(Schema.String).annotateKey({
  description: "The `cursor` of the page before, of what is newer; absent on the first."
})

/** Returns the tenant of a path; undefined for all of them. */
export const tenantOf = (name: string): string | undefined =>
  name === allTenants ? undefined : name

/** Fails where endpoints are named, and the path is of all tenants. */
export const checkEndpoints = (
  tenant: string | undefined,
  ids: ReadonlyArray<string> | undefined
): Effect.Effect<void, Invalid> =>
  tenant === undefined && ids !== undefined
    ? Effect.fail(invalid("endpoint", "needs a tenant in the path, and not *"))
    : Effect.void

/** Returns the endpoint that a tenant has under an id. Fails where that may be one of any tenant. */
export const endpointOf = (
  tenant: string | undefined,
  id: string | undefined
): Effect.Effect<{ readonly endpoint?: EndpointName }, Invalid> => {
  if (id === undefined) return Effect.succeed({})
  return tenant === undefined
    ? Effect.fail(invalid("endpoint", "needs a tenant in the path, and not *"))
    : Effect.succeed({ endpoint: { tenant, id } })
}

/**
 * Makes the cursors of a list: opaque texts that hold where a page begins. A text that is none
 * fails with a problem of the field `cursor`.
 *
 * @param name of the list, so that a cursor of another one is refused.
 */
export const makeCursor = <A>(name: string, position: Schema.Codec<A, unknown>) => {
  const schema = Schema.fromJsonString(Schema.Tuple([Schema.Literal(name), position]))
  const encode = Schema.encodeSync(schema)
  const decode = Schema.decodeUnknownOption(schema)
  const write = (at: A): string => Buffer.from(encode([name, at])).toString("base64url")
  return {
    /** Where the next page begins; nothing at the end. */
    next: (at: A | undefined): { readonly next?: string } =>
      at === undefined ? {} : { next: write(at) },
    write,
    read: (text: string | undefined): Effect.Effect<A | undefined, Invalid> => {
      if (text === undefined) return Effect.succeed(undefined)
      const found = decode(Buffer.from(text, "base64url").toString("utf8"))
      return Option.isSome(found)
        ? Effect.succeed(found.value[1])
        : Effect.fail(
            new Invalid({
              problems: [
                {
                  field: "cursor",
                  message: "does not belong to this list: take `next` of its last page"
                }
              ]
            })
          )
    }
  }
}

/** A range of times at which events were stored, ms since the epoch, inclusive. */
interface TimeRange {
  readonly since?: number | undefined
  readonly until?: number | undefined
}

/** Returns what is wrong with a range, whatever is stored. */
export const rangeProblems = ({ since, until }: TimeRange, now: number): ReadonlyArray<Problem> => {
  if (since !== undefined && until !== undefined && since > until)
    return [{ field: "since", message: "is later than `until`: nothing lies between" }]
  return since !== undefined && since > now
    ? [{ field: "since", message: "is in the future: there are no events yet" }]
    : []
}

/** Returns the endpoint in a delivery's id, `<event id>.<endpoint id>`. */
export const endpointIn = (delivery: string): string =>
  delivery.slice(delivery.lastIndexOf(".") + 1)

/** Returns a text that is given alone; undefined for none, several, or anything else. */
export const onlyOne = (given: unknown): string | undefined => {
  const [one, ...others] = Array.isArray(given) ? given : [given]
  return typeof one === "string" && others.length === 0 ? one : undefined
}
