import { Effect, Schema } from "effect"
import { asCaller } from "../caller.ts"
import { documented, operation, operationGroup } from "../operation.ts"
import { Tenant, tenantPath } from "../parameters.ts"
import {
  discard as discardOne,
  listQuarantined,
  QuarantinedView,
  Released,
  release as releaseOne,
  showQuarantined
} from "./manage-quarantine.ts"

const View = documented(QuarantinedView, {
  identifier: "Quarantined",
  description: "Something that came in and is no event.",
  fields: {
    number: "Its number, in the order in which all of it came.",
    reason:
      "`unreadable`: not of the shape that its provider documents; `id-collision`: an event with the same id and other bytes came before; `invalid`: it cannot be stored as an event.",
    problem: "One sentence.",
    event: "The sender's id, where it could be read.",
    type: "The sender's type, where it could be read.",
    headers: "Of the request, without those that authenticate it.",
    body: "The bytes, in base64."
  }
})

const ItemNumber = Schema.NumberFromString.check(
  Schema.isInt(),
  Schema.isBetween({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })
).annotateKey({ description: "Its number.", examples: [17] })

const one = `${tenantPath}/quarantine/:number` as const
const name = { tenant: Tenant, number: ItemNumber }

const list = operation("list", "GET", `${tenantPath}/quarantine`, {
  scope: "payloads:read",
  summary: "List what came in and is no event, oldest first",
  params: { tenant: Tenant },
  output: Schema.Struct({ quarantined: Schema.Array(View) }).annotate({
    identifier: "QuarantineList"
  }),
  run: ({ params: { tenant } }) =>
    Effect.map(listQuarantined(tenant), (quarantined) => ({ quarantined }))
})

const get = operation("get", "GET", one, {
  scope: "payloads:read",
  summary: "Show something in quarantine, and its bytes",
  params: name,
  output: View,
  refusals: ["not-found"],
  run: ({ params }) => showQuarantined(params.tenant, params.number)
})

const release = operation("release", "POST", `${one}/release`, {
  scope: "events:publish",
  summary: "Let something in quarantine be an event",
  params: name,
  payload: [
    Schema.Struct({
      type: Schema.optionalKey(Schema.String).annotateKey({
        description: "Of the event, without its source. (Default: what its provider says)"
      })
    }).annotate({ identifier: "Release", examples: [{ type: "invoice.paid" }] }),
    Schema.Null
  ],
  output: Released.annotate({ identifier: "Released" }),
  refusals: ["not-found", "conflict"],
  run: ({ params: { number, tenant }, payload }) =>
    asCaller((by) => releaseOne(tenant, number, payload?.type, by))
})

const discard = operation("discard", "DELETE", one, {
  scope: "events:publish",
  summary: "Remove something from quarantine for good",
  params: name,
  output: View,
  refusals: ["not-found"],
  run: ({ params: { number, tenant } }) => asCaller((by) => discardOne(tenant, number, by))
})

/** Operations on what came in and is no event. */
export const quarantineOperations = operationGroup(
  "quarantine",
  "What came in and is no event.",
  list,
  get,
  release,
  discard
)
