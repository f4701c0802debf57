import { Effect, Schema } from "effect"
import { withoutCommands } from "../../text/plain-text.ts"
import { asCaller } from "../caller.ts"
import { documented, notEmpty, operation, operationGroup } from "../operation.ts"
import { Tenant, tenantPath, wholeNumber } from "../parameters.ts"
import {
  DiscardedSeveral,
  discard as discardOne,
  discardSeveral,
  listQuarantined,
  QuarantineChoice,
  QuarantinedView,
  Released,
  ReleasedSeveral,
  release as releaseOne,
  releaseSeveral,
  showQuarantined
} from "./manage-quarantine.ts"

const View = documented(QuarantinedView, {
  identifier: "Quarantined",
  description: "A request in quarantine: it came in and could not become an event.",
  fields: {
    number: "Its number, in the order in which all of it came.",
    reason:
      "`unreadable`: not of the shape that its provider documents; `id-collision`: an event with the same id and other bytes came before; `invalid`: it cannot be stored as an event.",
    problem: "One sentence.",
    event: "The sender's id, if it could be read.",
    type: "The sender's type, if it could be read.",
    headers: "Of the request, without those that authenticate it.",
    body: "The bytes, in base64."
  }
})

const ItemNumber = wholeNumber().annotateKey({ description: "Its number.", examples: [17] })

const one = `${tenantPath}/quarantine/:number` as const
const name = { tenant: Tenant, number: ItemNumber }

const list = operation("list", "GET", `${tenantPath}/quarantine`, {
  scope: "payloads:read",
  summary: "List the requests in quarantine, oldest first",
  params: { tenant: Tenant },
  output: Schema.Struct({
    quarantined: Schema.Array(View).annotateKey({ description: "What is in quarantine." })
  }).annotate({
    identifier: "QuarantineList"
  }),
  run: ({ params: { tenant } }) =>
    Effect.map(listQuarantined(tenant), (quarantined) => ({ quarantined }))
})

const get = operation("get", "GET", one, {
  scope: "payloads:read",
  summary: "Show a request in quarantine, and its bytes",
  params: name,
  output: View,
  refusals: ["not-found"],
  run: ({ params }) => showQuarantined(params.tenant, params.number)
})

/** A type that whoever releases gives. An empty one is none. */
const GivenType = Schema.String.check(Schema.isMinLength(1))

const release = operation("release", "POST", `${one}/release`, {
  scope: "events:publish",
  summary: "Make a request in quarantine an event",
  params: name,
  payload: [
    Schema.Struct({
      type: Schema.optionalKey(GivenType).annotateKey({
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
  summary: "Remove a request from quarantine for good",
  params: name,
  output: View,
  refusals: ["not-found"],
  run: ({ params: { number, tenant } }) => asCaller((by) => discardOne(tenant, number, by))
})

const choiceTexts = {
  number: "Their numbers, up to 100. All conditions hold at once.",
  source: "Only those of this source.",
  reason: "Only those that are there for this reason.",
  all: "`true` for all of it. (Default: false)"
}

const Choice = documented(QuarantineChoice, {
  identifier: "QuarantineChoice",
  description:
    "Which requests of a tenant's quarantine are selected: by number, source, reason, or all.",
  fields: choiceTexts,
  examples: [{ source: "stripe", reason: "unreadable" }],
  says: notEmpty
})

const ReleaseChoice = documented(
  Schema.Struct({ ...QuarantineChoice.fields, type: Schema.optionalKey(GivenType) }),
  {
    identifier: "ReleaseChoice",
    description: "Which requests of a tenant's quarantine become events, and of which type.",
    fields: {
      ...choiceTexts,
      type: "Of all their events, without their source. (Default: what the provider says of each)"
    },
    examples: [{ source: "stripe", reason: "id-collision" }],
    says: notEmpty
  }
)

/** What stays names no commands. */
const withoutCommandsIn = <A extends Pick<ReleasedSeveral, "left">>(done: A): A => ({
  ...done,
  left: done.left.map(({ number, problem }) => ({ number, problem: withoutCommands(problem) }))
})

const releaseMany = operation("releaseSeveral", "POST", `${tenantPath}/quarantine-release`, {
  scope: "events:publish",
  summary: "Make several requests in quarantine events",
  description:
    "Each is released by itself, oldest first. What cannot be an event stays there, and is in `left` with its problem.",
  params: { tenant: Tenant },
  payload: ReleaseChoice,
  output: ReleasedSeveral.annotate({ identifier: "ReleasedSeveral" }),
  refusals: ["conflict"],
  run: ({ params: { tenant }, payload: { type, ...choice } }) =>
    Effect.map(
      asCaller((by) => releaseSeveral(tenant, choice, type, by)),
      withoutCommandsIn
    )
})

const discardMany = operation("discardSeveral", "POST", `${tenantPath}/quarantine-discard`, {
  scope: "events:publish",
  summary: "Remove several requests from quarantine for good",
  params: { tenant: Tenant },
  payload: Choice,
  output: DiscardedSeveral.annotate({ identifier: "DiscardedSeveral" }),
  run: ({ params: { tenant }, payload }) =>
    Effect.map(
      asCaller((by) => discardSeveral(tenant, payload, by)),
      withoutCommandsIn
    )
})

/** Operations on what came in and is no event. */
export const quarantineOperations = operationGroup(
  "quarantine",
  "Requests in quarantine, which came in and could not become events.",
  list,
  get,
  release,
  releaseMany,
  discard,
  discardMany
)
