import { createHash, createHmac } from "node:crypto"
import type { GenericHmacScheme } from "../../../../providers/generic-hmac-scheme.ts"
import { signedParts } from "../../../../providers/generic-hmac-scheme.ts"
import type { KnownProvider } from "../../../../providers/providers.ts"
import type { ProviderSettings } from "../../../../providers/settings.ts"

/** An event that is made up, in the terms of all providers. */
export interface MadeEvent {
  readonly id: string
  readonly type: string
  /** ms. */
  readonly at: number
  readonly subject: string
}

/** With what a request is signed. */
export interface Signing {
  readonly secret: string
  /** The time that is signed, ms, a multiple of 1,000. */
  readonly at: number
  /** Where the request goes. */
  readonly url: string
}

/** A request that is ready to be sent. */
export interface SignedRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** The header with the signature, if its name does not say so. */
  readonly signatureHeader?: string
}

type Json = Readonly<Record<string, unknown>>

/** Makes a signed request of an event. `template` is what the body holds besides. */
export type Sender = (event: MadeEvent, template: Json, signing: Signing) => SignedRequest

const seconds = ({ at }: Signing): string => String(at / 1_000)

type Part = string | Uint8Array

const hmac = (key: Part, parts: ReadonlyArray<Part>, algorithm = "sha256") => {
  const made = createHmac(algorithm, key)
  for (const part of parts) made.update(part)
  return made
}

const hex = (key: Part, ...parts: ReadonlyArray<Part>) => hmac(key, parts).digest("hex")
const base64 = (key: Part, ...parts: ReadonlyArray<Part>) => hmac(key, parts).digest("base64")

/** Returns the object with a value at a path, and all else as it was. */
const withValue = (value: unknown, path: ReadonlyArray<string>, leaf: unknown): unknown => {
  const [name, ...rest] = path
  if (name === undefined) return leaf
  const inside = typeof value === "object" && value !== null ? { ...value } : {}
  return { ...inside, [name]: withValue((inside as Json)[name], rest, leaf) }
}

const filled = (template: Json, values: Readonly<Record<string, unknown>>): Json =>
  Object.entries(values).reduce<Json>(
    (made, [path, leaf]) => withValue(made, path.split("."), leaf) as Json,
    template
  )

const bytes = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))
const iso = (ms: number): string => new Date(ms).toISOString()

const json = (headers: Readonly<Record<string, string>>, body: Buffer): SignedRequest => ({
  headers: { "content-type": "application/json", ...headers },
  body
})

const standardHeaders = (id: string, body: Buffer, signing: Signing) => {
  const key = Buffer.from(signing.secret.replace(/^whsec_/, ""), "base64")
  return {
    "webhook-id": id,
    "webhook-timestamp": seconds(signing),
    "webhook-signature": `v1,${base64(key, `${id}.${seconds(signing)}.`, body)}`
  }
}

const petrel: Sender = (event, template, signing) => {
  const body = bytes({ ...template, id: event.id, at: iso(event.at), about: event.subject })
  const headers = { ...standardHeaders(event.id, body, signing), "petrel-attempt": "1" }
  return json({ ...headers, "webhook-event-type": event.type }, body)
}

const standardWebhooks: Sender = (event, template, signing) => {
  const own = { type: event.type, timestamp: iso(event.at), "data.id": event.subject }
  const body = bytes(filled(template, own))
  return json(standardHeaders(event.id, body, signing), body)
}

const stripe: Sender = (event, template, signing) => {
  const own = { id: event.id, type: event.type, created: Math.floor(event.at / 1_000) }
  const body = bytes(
    filled({ object: "event", ...template }, { ...own, "data.object.customer": event.subject })
  )
  const made = hex(signing.secret, `${seconds(signing)}.`, body)
  return json({ "stripe-signature": `t=${seconds(signing)},v1=${made}` }, body)
}

const github: Sender = (event, template, { secret }) => {
  const [kind = event.type, action] = event.type.split(".")
  const own = { "repository.full_name": event.subject, ...(action !== undefined && { action }) }
  const body = bytes(filled(template, own))
  return json(
    {
      "x-github-event": kind,
      "x-github-delivery": event.id,
      "x-hub-signature-256": `sha256=${hex(secret, body)}`
    },
    body
  )
}

const gitlab: Sender = (event, template, signing) => {
  const [kind = event.type, action] = event.type.split(".")
  const own = {
    object_kind: kind,
    "project.path_with_namespace": event.subject,
    "object_attributes.updated_at": iso(event.at),
    ...(action !== undefined && { "object_attributes.action": action })
  }
  const body = bytes(filled(template, own))
  return json(
    signing.secret.startsWith("whsec_")
      ? standardHeaders(event.id, body, signing)
      : { "webhook-id": event.id, "x-gitlab-token": signing.secret },
    body
  )
}

const shopify: Sender = (event, template, { secret }) => {
  const body = bytes({ ...template, admin_graphql_api_id: event.subject })
  return json(
    {
      "x-shopify-topic": event.type,
      "x-shopify-webhook-id": event.id,
      "x-shopify-shop-domain": "storm.myshopify.com",
      "x-shopify-triggered-at": iso(event.at),
      "x-shopify-hmac-sha256": base64(secret, body)
    },
    body
  )
}

const slack: Sender = (event, template, signing) => {
  const own = {
    type: "event_callback",
    event_id: event.id,
    event_time: Math.floor(event.at / 1_000)
  }
  const inner = { "event.type": event.type, "event.channel": event.subject }
  const body = bytes(filled(template, { ...own, ...inner }))
  return json(
    {
      "x-slack-request-timestamp": seconds(signing),
      "x-slack-signature": `v0=${hex(signing.secret, `v0:${seconds(signing)}:`, body)}`
    },
    body
  )
}

const twilio: Sender = (event, template, { secret, url }) => {
  const fields = {
    ...template,
    MessageSid: event.subject,
    MessageStatus: event.type.split(".").at(-1)
  }
  const form = new URLSearchParams(
    Object.entries(fields).map(([name, value]) => [name, String(value)] as [string, string])
  )
  const sorted = [...form].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => name + value)
  return {
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      "i-twilio-idempotency-token": event.id,
      "x-twilio-signature": hmac(secret, [url, sorted.join("")], "sha1").digest("base64")
    },
    body: Buffer.from(form.toString())
  }
}

const paddle: Sender = (event, template, signing) => {
  const own = { event_id: event.id, event_type: event.type, occurred_at: iso(event.at) }
  const body = bytes(filled(template, { ...own, "data.customer_id": event.subject }))
  const made = hex(signing.secret, `${seconds(signing)}:`, body)
  return json({ "paddle-signature": `ts=${seconds(signing)};h1=${made}` }, body)
}

const square: Sender = (event, template, { secret, url }) => {
  const own = { event_id: event.id, type: event.type, created_at: iso(event.at) }
  const body = bytes(filled(template, { ...own, "data.id": event.subject }))
  return json({ "x-square-hmacsha256-signature": base64(secret, url, body) }, body)
}

const linear: Sender = (event, template, { at, secret }) => {
  const [type = event.type, action = "update"] = event.type.split(".")
  const own = { type, action, createdAt: iso(event.at), "data.id": event.subject }
  const body = bytes(filled(template, { ...own, webhookTimestamp: at }))
  return json({ "linear-delivery": event.id, "linear-signature": hex(secret, body) }, body)
}

const hubspot: Sender = (event, template, { at, secret, url }) => {
  const body = bytes([
    {
      ...template,
      eventId: event.id,
      subscriptionType: event.type,
      occurredAt: event.at,
      objectId: event.subject
    }
  ])
  return json(
    {
      "x-hubspot-request-timestamp": String(at),
      "x-hubspot-signature-v3": base64(secret, `POST${url}`, body, String(at))
    },
    body
  )
}

const zoom: Sender = (event, template, signing) => {
  const own = { event: event.type, event_ts: event.at, "payload.object.uuid": event.subject }
  // Zoom gives no id: the body is the key, so it differs from event to event.
  const body = bytes(filled(template, { ...own, "payload.object.storm": event.id }))
  return json(
    {
      "x-zm-request-timestamp": seconds(signing),
      "x-zm-signature": `v0=${hex(signing.secret, `v0:${seconds(signing)}:`, body)}`
    },
    body
  )
}

const mailgun: Sender = (event, template, signing) => {
  const [timestamp, token] = [seconds(signing), createHash("sha256").update(event.id).digest("hex")]
  const own = {
    signature: { timestamp, token, signature: hex(signing.secret, timestamp, token) },
    "event-data.id": event.id,
    "event-data.event": event.type,
    "event-data.timestamp": event.at / 1_000,
    "event-data.message.headers.message-id": event.subject
  }
  return json({}, bytes(filled(template, own)))
}

const meta: Sender = (event, template, { secret }) => {
  const [object = event.type, field = "messages"] = event.type.split(".")
  const value = { ...template, messages: [{ id: event.id }] }
  const entry = {
    id: event.subject,
    time: Math.floor(event.at / 1_000),
    changes: [{ field, value }]
  }
  const body = bytes({ object, entry: [entry] })
  return json({ "x-hub-signature-256": `sha256=${hex(secret, body)}` }, body)
}

const x: Sender = (event, template, { secret }) => {
  const one = { ...template, id_str: event.id, timestamp_ms: String(event.at) }
  const name = event.type.endsWith("_events") ? event.type : "tweet_create_events"
  const body = bytes({ for_user_id: event.subject, [name]: [one] })
  return json({ "x-twitter-webhooks-signature": `sha256=${base64(secret, body)}` }, body)
}

/** Returns what signs as a description of a generic HMAC says. */
const genericSender =
  (scheme: GenericHmacScheme): Sender =>
  (event, template, { at, secret, url }) => {
    const { algorithm = "sha256", encoding = "hex", prefix = "", secretEncoding = "utf8" } = scheme
    const time = String(scheme.timestampUnit === "ms" ? at : at / 1_000)
    const values = { id: event.id, type: event.type, at: iso(event.at), subject: event.subject }
    const headers: Record<string, string> = {}
    let made = template
    for (const [name, value] of Object.entries(values)) {
      const place = scheme[name as keyof typeof values]
      if (place?.startsWith("header:")) headers[place.slice("header:".length)] = value
      else if (place !== undefined) made = filled(made, { [place.slice("body:".length)]: value })
    }
    if (scheme.timestampHeader !== undefined) headers[scheme.timestampHeader] = time
    const body = bytes(scheme.id === undefined ? { ...made, storm: event.id } : made)
    const named = { body, timestamp: time, id: event.id, url, method: "POST" }
    const parts = signedParts(scheme.signed ?? "{body}").map((part) =>
      "text" in part ? part.text : named[part.part]
    )
    const signature = hmac(Buffer.from(secret, secretEncoding), parts, algorithm).digest(encoding)
    const signed = json({ ...headers, [scheme.header]: prefix + signature }, body)
    return { ...signed, signatureHeader: scheme.header }
  }

const senders: Readonly<Record<string, Sender>> = {
  petrel,
  "standard-webhooks": standardWebhooks,
  stripe,
  github,
  gitlab,
  shopify,
  slack,
  twilio,
  paddle,
  square,
  linear,
  hubspot,
  zoom,
  mailgun,
  meta,
  x
}

/**
 * Returns what makes requests as a provider does; undefined where only the provider can sign, as
 * its receivers know no more than a public key.
 */
export const senderOf = (provider: string, { scheme }: ProviderSettings): Sender | undefined =>
  provider === "hmac" && scheme !== undefined ? genericSender(scheme) : senders[provider]

/** What receivers can verify. */
export interface Signed {
  readonly body: boolean
  readonly time: boolean
}

/** Returns what a provider signs with these settings. The time counts only if its receivers look at it. */
export const signedBy = (
  { name, toleranceMs }: KnownProvider,
  { scheme }: ProviderSettings,
  secret: string
): Signed => {
  const body = name !== "gitlab" || secret.startsWith("whsec_")
  const hasTime = scheme === undefined || scheme.timestampHeader !== undefined
  return {
    body: body && name !== "mailgun",
    time: toleranceMs !== undefined && body && hasTime
  }
}
