import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { endpointSettings } from "../../domain/settings/endpoint-table.ts"
import { textsOf } from "../../domain/settings/setting.ts"
import {
  EndpointPatch,
  endpointInputs,
  NewEndpoint
} from "../../operations/endpoints/endpoint-settings.ts"
import {
  EndpointState,
  RemovedEndpoint,
  StateReason
} from "../../operations/endpoints/endpoint-state.ts"
import { EndpointDetail, EndpointHealthView } from "../../operations/endpoints/endpoint-view.ts"
import { RotatedEndpoint, Rotation } from "../../operations/endpoints/rotate-secret.ts"
import { ChangedEndpointView } from "../../operations/endpoints/set-endpoint.ts"
import { Access, Needs } from "../access.ts"
import { Conflict, NotFound, RevisionMismatch } from "../problems.ts"
import { EndpointId, next, pageQuery, Tenant, TenantOrAll, tenantPath } from "./common.ts"
import { documented } from "./documented.ts"

/** What the document says of each setting. */
const settingTexts = textsOf(endpointInputs)

const exampleSettings = {
  url: "https://example.com/hooks",
  types: ["invoice.*"],
  maxInFlight: 20,
  timeout: "10 seconds"
}

const NewEndpointBody = documented(NewEndpoint, {
  identifier: "NewEndpoint",
  description: "The settings of an endpoint. What is left out is at its default.",
  fields: settingTexts,
  examples: [exampleSettings]
})

const PatchBody = documented(EndpointPatch, {
  identifier: "EndpointPatch",
  description:
    "A change of an endpoint's settings: what is left out stays as it is, null removes a setting.",
  fields: settingTexts,
  examples: [{ maxInFlight: 5, rate: { perSecond: 10, burst: 20 } }]
})

const shownTexts = {
  ...textsOf(endpointSettings),
  tenant: "Its tenant.",
  id: "Its id within the tenant.",
  generation: "Made anew each time that an endpoint of this name is added.",
  secrets: "Its signing secrets, newest first, without their values.",
  headers: "Headers that it gets with every request, without their values.",
  disabled: "Since when and why it gets no events.",
  suspended: "Since when and why it was given up; its deliveries wait.",
  paused: "Since when and why its deliveries are held back.",
  createdAt: "ms since the epoch.",
  updatedAt: "ms since the epoch.",
  revision: "Changes with every change; the ETag of the endpoint.",
  publicKey: "With which receivers verify, where the scheme has one."
}

const Listed = documented(EndpointHealthView, {
  identifier: "Endpoint",
  description: "An endpoint: its settings, and how it fares.",
  fields: shownTexts
})

const Detail = documented(EndpointDetail, {
  identifier: "EndpointDetail",
  description: "An endpoint: its settings, how it fares, and what waits for it.",
  fields: shownTexts
})

const Changed = documented(ChangedEndpointView, {
  identifier: "ChangedEndpoint",
  description: "An endpoint after a change.",
  fields: {
    ...shownTexts,
    secret: "The signing secret, if one was made. It is not shown again.",
    cautions: "What is valid, but seldom intended.",
    changed: "The settings that differ from before."
  }
})

const State = documented(EndpointState, {
  identifier: "EndpointState",
  description: "An endpoint after a change of its state.",
  fields: { ...shownTexts, changed: "False if it had that state already." }
})

const Rotated = documented(RotatedEndpoint, {
  identifier: "RotatedEndpoint",
  description: "An endpoint with a new secret.",
  fields: { ...shownTexts, secret: "The new secret, if it was made. It is not shown again." }
})

const { keepOld, ...rotated } = Rotation.fields

const RotationBody = documented(Schema.Struct({ ...rotated, keepOld: Schema.optional(keepOld) }), {
  identifier: "Rotation",
  fields: {
    secret: "The new secret. (Default: one is made)",
    keepOld:
      'How long the old secrets sign, too; "0 seconds" drops them at once. (Default: 24 hours)'
  },
  examples: [{ keepOld: "24 hours" }]
})

const ReasonBody = documented(StateReason, {
  identifier: "Reason",
  fields: { reason: "Why, for the history." },
  examples: [{ reason: "maintenance" }]
})

const Secrets = Schema.Struct({
  secrets: EndpointDetail.fields.secrets,
  headers: EndpointDetail.fields.headers
}).annotate({
  identifier: "EndpointSecrets",
  description: "What an endpoint shows of itself only to who may see it."
})

const ifMatch = {
  "if-match": Schema.optionalKey(
    Schema.String.annotateKey({
      description:
        'The ETag of the endpoint as you know it, such as `"42"`: the change is refused (412) if it is another by now.',
      examples: ['"42"']
    })
  )
}

const ifNoneMatch = {
  "if-none-match": Schema.optionalKey(
    Schema.Literal("*").annotateKey({ description: "`*`: only if there is no such endpoint yet." })
  )
}

const etag = { etag: Schema.String.annotateKey({ description: "Its revision, in quotes." }) }
const name = { tenant: Tenant, id: EndpointId }
const one = `${tenantPath}/endpoints/:id` as const
const changes = [NotFound, Conflict, RevisionMismatch]

const list = HttpApiEndpoint.get("list", `${tenantPath}/endpoints`, {
  params: { tenant: TenantOrAll },
  query: pageQuery,
  success: Schema.Struct({ endpoints: Schema.Array(Listed), next }).annotate({
    identifier: "EndpointList"
  })
})
  .annotate(Needs, "endpoints:read")
  .annotate(OpenApi.Summary, "List endpoints, in the order of their names")

const get = HttpApiEndpoint.get("get", one, {
  params: name,
  success: HttpApiSchema.WithHeaders(Detail, etag),
  error: [NotFound]
})
  .annotate(Needs, "endpoints:read")
  .annotate(OpenApi.Summary, "Show an endpoint, how it fares and what waits for it")

const put = HttpApiEndpoint.put("put", one, {
  params: name,
  headers: { ...ifMatch, ...ifNoneMatch },
  payload: NewEndpointBody,
  success: [
    HttpApiSchema.WithHeaders(Changed, etag),
    HttpApiSchema.WithHeaders(Changed.pipe(HttpApiSchema.status(201)), etag)
  ],
  error: changes
})
  .annotate(Needs, "endpoints:write")
  .annotate(OpenApi.Summary, "Add an endpoint, or replace its settings")
  .annotate(
    OpenApi.Description,
    "Settings that are left out go back to their defaults; secrets and the state remain. With If-Match, only the revision that you know is replaced."
  )

const patch = HttpApiEndpoint.patch("patch", one, {
  params: name,
  headers: ifMatch,
  payload: PatchBody,
  success: HttpApiSchema.WithHeaders(Changed, etag),
  error: changes
})
  .annotate(Needs, "endpoints:write")
  .annotate(OpenApi.Summary, "Change some settings of an endpoint, and leave the rest")

const remove = HttpApiEndpoint.delete("remove", one, {
  params: name,
  headers: ifMatch,
  success: RemovedEndpoint.annotate({ identifier: "RemovedEndpoint" }),
  error: changes
})
  .annotate(Needs, "endpoints:write")
  .annotate(OpenApi.Summary, "Remove an endpoint; what waits for it becomes dead letters")

const state = { params: name, success: State, error: changes }

const enable = HttpApiEndpoint.post("enable", `${one}/enable`, state)
  .annotate(Needs, "endpoints:write")
  .annotate(OpenApi.Summary, "Put a disabled endpoint back to work")

const disable = HttpApiEndpoint.post("disable", `${one}/disable`, {
  ...state,
  payload: [ReasonBody, Schema.Null]
})
  .annotate(Needs, "endpoints:write")
  .annotate(OpenApi.Summary, "Take an endpoint out of service; what waits becomes dead letters")

const pause = HttpApiEndpoint.post("pause", `${one}/pause`, {
  ...state,
  payload: [ReasonBody, Schema.Null]
})
  .annotate(Needs, "endpoints:write")
  .annotate(OpenApi.Summary, "Hold an endpoint's deliveries back until it is resumed")

const resume = HttpApiEndpoint.post("resume", `${one}/resume`, state)
  .annotate(Needs, "endpoints:write")
  .annotate(OpenApi.Summary, "Let the deliveries of a paused or suspended endpoint go on")

const rotate = HttpApiEndpoint.post("rotate", `${one}/rotate`, {
  params: name,
  payload: [RotationBody, Schema.Null],
  success: Rotated,
  error: changes
})
  .annotate(Needs, "endpoints:write")
  .annotate(OpenApi.Summary, "Give an endpoint a new secret; the old ones hold for a while")

const secret = HttpApiEndpoint.get("secret", `${one}/secret`, {
  params: name,
  success: Secrets,
  error: [NotFound]
})
  .annotate(Needs, "secrets:read")
  .annotate(OpenApi.Summary, "Show an endpoint's secrets and the values of its headers")

/** Routes of endpoints. */
export class EndpointsGroup extends HttpApiGroup.make("endpoints")
  .add(list, get, put, patch, remove, enable, disable, pause, resume, rotate, secret)
  .middleware(Access)
  .annotate(OpenApi.Description, "Where events of a tenant go.") {}
