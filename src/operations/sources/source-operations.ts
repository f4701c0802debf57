import { Duration, Effect, Schema } from "effect"
import { SourceId } from "../../domain/source.ts"
import { Token } from "../../domain/token.ts"
import { providers } from "../../providers/providers.ts"
import { asCaller } from "../caller.ts"
import { documented, operation, operationGroup, withStatus } from "../operation.ts"
import { Tenant, TenantOrAll, tenantOf, tenantPath } from "../parameters.ts"
import { changing, expecting, ifMatch, tagged } from "../preconditions.ts"
import {
  addSource,
  listSources,
  NewSource,
  providersBySetting,
  removeSource,
  rotateSource,
  SourcePatch,
  SourceRotation,
  SourceView,
  setSource,
  showSource
} from "./manage-sources.ts"

const takers = providersBySetting()

const only = (names: ReadonlyArray<string>): string => `Only for ${names.join(", ")}.`

/** The providers that take no secrets. */
const withoutSecrets = [...providers.keys()].filter((name) => !takers.secrets.includes(name))

/** What the settings of a source mean. */
const sourceTexts = {
  tolerance: "How far the signed time may be off; the default depends on the provider.",
  publicUrl: `The URL that the provider was given, without its query, which it signs. ${only(takers.publicUrl)}`,
  webhookId:
    "What the provider calls the webhook, such as `repos/acme/shop/hooks/42` in GitHub's API.",
  verifyToken: `What the provider repeats when the webhook is set up. ${only(takers.verifyToken)}`,
  scheme: "How a sender of the provider `hmac` signs.",
  rate: "Requests that each gateway takes; others are refused for now, and the provider sends them again.",
  apiKey: `Credentials for the provider's API, which is asked for events that never came in. ${only(takers.apiKey)}`,
  apiUrl: "Where the provider's API is, if it is not the provider's own.",
  reconcile:
    "How often gateways ask the provider's API for events that never came in, and fetch them.",
  reconcileTypes: "Patterns of the provider's types that are compared, such as `invoice.*`.",
  alertAbove: "How many events may be missing before `provider-lost` is recorded in the history."
}

const View = documented(SourceView, {
  identifier: "Source",
  description: "A provider's webhooks that come in. Secrets are masked.",
  fields: {
    ...sourceTexts,
    id: "Its name within the tenant: the first token of its events' types.",
    provider: "Who sends: stripe, github, standard and others.",
    secrets: "With which requests are verified, newest first.",
    path: "Where the provider posts, on a gateway (`petrel ingest`).",
    reconciled: "What its last reconciliation found, if a single source is shown.",
    refusing:
      "The gateways that refuse every request of it now, and why, if a single source is shown; absent if none does."
  }
})

const New = documented(NewSource, {
  identifier: "NewSource",
  description: "A source that is to be added.",
  fields: {
    ...sourceTexts,
    provider: "Who sends: stripe, github, standard and others.",
    secrets: `What the provider signs with, or its public keys. Needed, but for ${withoutSecrets.join(", ")}.`
  },
  examples: [{ provider: "stripe", secrets: ["whsec_…"] }],
  says: {
    dependentSchemas: Object.fromEntries(
      Object.entries(takers).map(([name, names]) => [
        name,
        { properties: { provider: { enum: names } }, additionalProperties: true }
      ])
    )
  }
})

const Patch = documented(SourcePatch, {
  identifier: "SourcePatch",
  description: "A change of a source: what is left out stays as it is, null removes a setting.",
  fields: sourceTexts,
  examples: [{ rate: "200/s" }]
})

const Rotation = documented(
  Schema.Struct({
    secret: SourceRotation.fields.secret,
    keepOld: Schema.optionalKey(SourceRotation.fields.keepOld)
  }),
  {
    identifier: "SourceRotation",
    description: "A new secret, and how long the old ones stay valid (24 hours by default).",
    fields: {
      secret: "What the provider signs with from now on.",
      keepOld: "How long the old ones verify, too; `0 seconds` drops them at once."
    },
    examples: [{ secret: "whsec_…", keepOld: Duration.hours(1) }]
  }
)

const Removed = Schema.Struct({
  tenant: Token.annotateKey({ description: "The name of the tenant." }),
  id: Schema.String.annotateKey({ description: "The id of the source." }),
  provider: Schema.String.annotateKey({ description: "The name of the provider." })
}).annotate({ identifier: "RemovedSource" })

const defaultKeepOld = Duration.hours(24)

const Id = SourceId.annotateKey({
  description: "The source's name within its tenant.",
  examples: ["stripe"]
})
const name = { tenant: Tenant, id: Id }
const one = `${tenantPath}/sources/:id` as const
const changes = ["not-found", "revision-mismatch", "conflict"] as const

const list = operation("list", "GET", `${tenantPath}/sources`, {
  scope: "endpoints:read",
  summary: "List the sources of events, in the order of their names",
  params: { tenant: TenantOrAll },
  output: Schema.Struct({
    sources: Schema.Array(View).annotateKey({ description: "The sources." })
  }).annotate({ identifier: "SourceList" }),
  run: ({ params }) => Effect.map(listSources(tenantOf(params.tenant)), (sources) => ({ sources }))
})

const get = operation("get", "GET", one, {
  scope: "endpoints:read",
  summary: "Show a source, without its secrets",
  hasRevision: true,
  params: name,
  output: View,
  refusals: ["not-found", "conflict"],
  run: ({ params }) => Effect.map(showSource(params), (shown) => tagged(shown))
})

const add = operation("add", "POST", one, {
  scope: "endpoints:write",
  summary: "Receive a provider's webhooks",
  hasRevision: true,
  params: name,
  payload: New,
  output: withStatus(View, 201),
  refusals: ["conflict"],
  run: ({ params, payload }) =>
    Effect.map(
      asCaller((by) => addSource(params, payload, by)),
      (added) => tagged(added, true)
    )
})

const patch = operation("patch", "PATCH", one, {
  scope: "endpoints:write",
  summary: "Change some settings of a source, and leave the rest",
  hasRevision: true,
  params: name,
  headers: ifMatch,
  payload: Patch,
  output: View,
  refusals: changes,
  run: ({ headers, params, payload }) =>
    changing(headers, (by, expected) => setSource(params, payload, by, expected))
})

const rotate = operation("rotate", "POST", `${one}/rotate`, {
  scope: "endpoints:write",
  summary: "Give a source a new secret; the old ones stay valid for a while",
  hasRevision: true,
  params: name,
  headers: ifMatch,
  payload: Rotation,
  output: View,
  refusals: changes,
  run: ({ headers, params, payload }) =>
    changing(headers, (by, expected) =>
      rotateSource(params, { keepOld: defaultKeepOld, ...payload }, by, expected)
    )
})

const remove = operation("remove", "DELETE", one, {
  scope: "endpoints:write",
  summary: "Remove a source: what its provider sends from then on is refused",
  params: name,
  headers: ifMatch,
  output: Removed,
  refusals: changes,
  run: ({ headers, params }) =>
    expecting(headers, ({ by }, expected) => removeSource(params, by, expected))
})

/** Operations on sources of events. */
export const sourceOperations = operationGroup(
  "sources",
  "Providers whose webhooks come in.",
  list,
  get,
  add,
  patch,
  rotate,
  remove
)
