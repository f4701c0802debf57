import { Schema } from "effect"
import { endpointSettings } from "../../domain/settings/endpoint-table.ts"
import { textsOf } from "../../domain/settings/setting.ts"
import { documented } from "../operation.ts"
import { EndpointState, StateReason } from "./change-state.ts"
import { RotatedEndpoint, Rotation } from "./endpoint-secrets.ts"
import { EndpointPatch, endpointInputs, NewEndpoint } from "./endpoint-settings.ts"
import { EndpointDetail, EndpointHealthView } from "./endpoint-view.ts"
import { ChangedEndpointView } from "./write-endpoint.ts"

/** What the document says of each setting. */
const settingTexts = textsOf(endpointInputs)

const exampleSettings = {
  url: "https://example.com/hooks",
  types: ["invoice.*"],
  maxInFlight: 20,
  timeout: "10 seconds"
}

export const NewEndpointBody = documented(NewEndpoint, {
  identifier: "NewEndpoint",
  description: "The settings of an endpoint. What is left out is at its default.",
  fields: settingTexts,
  examples: [exampleSettings]
})

export const PatchBody = documented(EndpointPatch, {
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
  generation: "Created each time that an endpoint of this name is added.",
  secrets: "Its signing secrets, newest first, without their values.",
  headers: "Headers that it gets with every request, without their values.",
  disabled: "Since when and why it gets no events.",
  suspended: "Since when and why it was given up; its deliveries wait.",
  paused: "Since when and why its deliveries are held back.",
  createdAt: "When it was added.",
  updatedAt: "When it was changed last.",
  revision: "Changes with every change; the ETag of the endpoint.",
  publicKey: "With which receivers verify, where the scheme has one."
}

export const Listed = documented(EndpointHealthView, {
  identifier: "Endpoint",
  description: "An endpoint: its settings, and its health.",
  fields: shownTexts
})

export const Detail = documented(EndpointDetail, {
  identifier: "EndpointDetail",
  description: "An endpoint: its settings, its health, and what waits for it.",
  fields: {
    ...shownTexts,
    timeoutsCutTo:
      "The longest time-out that counts, where one of its own or of its policies is longer."
  }
})

export const Changed = documented(ChangedEndpointView, {
  identifier: "ChangedEndpoint",
  description: "An endpoint after a change.",
  fields: {
    ...shownTexts,
    secret: "The signing secret, if one was made. It is not shown again.",
    cautions: "What is valid but seldom intended.",
    changed: "The settings that differ from before."
  }
})

export const State = documented(EndpointState, {
  identifier: "EndpointState",
  description: "An endpoint after a change of its state.",
  fields: { ...shownTexts, changed: "False if it had that state already." }
})

export const Rotated = documented(RotatedEndpoint, {
  identifier: "RotatedEndpoint",
  description: "An endpoint with a new secret.",
  fields: { ...shownTexts, secret: "The new secret, if it was made. It is not shown again." }
})

const { keepOld, ...rotated } = Rotation.fields

export const RotationBody = documented(
  Schema.Struct({ ...rotated, keepOld: Schema.optional(keepOld) }),
  {
    identifier: "Rotation",
    fields: {
      secret: "The new secret. (Default: one is made)",
      keepOld:
        'How long the old secrets sign, too; "0 seconds" drops them at once. (Default: 24 hours)'
    },
    examples: [{ keepOld: "24 hours" }]
  }
)

export const ReasonBody = documented(StateReason, {
  identifier: "Reason",
  fields: { reason: "Why, for the history." },
  examples: [{ reason: "maintenance" }]
})

export const Secrets = Schema.Struct({
  secrets: EndpointDetail.fields.secrets.annotateKey({
    description: "The signing secrets, the newest first."
  }),
  headers: EndpointDetail.fields.headers.annotateKey({
    description: "The headers that it is sent, with their values."
  })
}).annotate({
  identifier: "EndpointSecrets",
  description: "The secrets of an endpoint, for callers who may see them."
})
