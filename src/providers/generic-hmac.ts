import { createSecretKey, type KeyObject } from "node:crypto"
import { bodyJson, momentAt, textAt, unreadable, wholeBody } from "./body.ts"
import { decoded, fromBase64, fromHex, timeOf } from "./encoded.ts"
import {
  type GenericHmacScheme,
  type SchemePart,
  schemeProblem,
  signedParts
} from "./generic-hmac-scheme.ts"
import { daysMs, minutesMs, type ProviderKind, provide } from "./kind.ts"
import type { Provider, Reading, ReceivedRequest } from "./provider.ts"
import { publicUrlSetting, secretsSetting, signedUrl, toleranceSetting } from "./settings.ts"
import {
  type Claim,
  headerOf,
  malformedSignature,
  malformedTime,
  type Refusal,
  verifiedByHmac
} from "./signed.ts"

export interface GenericHmacSettings {
  readonly secrets: ReadonlyArray<string>
  readonly scheme: GenericHmacScheme
  /** Needed where `{url}` is signed: the URL that the sender was given, without its query. */
  readonly publicUrl?: string
  /** Counts where `{timestamp}` is signed. (Default: 300,000) */
  readonly toleranceMs?: number
}

const keyOf = (secret: string, encoding: GenericHmacScheme["secretEncoding"]) => {
  if (encoding === undefined || encoding === "utf8") return createSecretKey(Buffer.from(secret))
  const bytes = encoding === "hex" ? fromHex(secret.toLowerCase()) : fromBase64(secret)
  return bytes === undefined ? undefined : createSecretKey(bytes)
}

const makeClaimOf = ({ publicUrl = "", scheme }: GenericHmacSettings) => {
  const { encoding = "hex", header, prefix = "", timestampHeader, timestampUnit = "s" } = scheme
  const template = signedParts(scheme.signed ?? "{body}")
  const isIdSigned = template.some((one) => "part" in one && one.part === "id")
  const decode = (text: string) =>
    encoding === "hex" ? fromHex(text.toLowerCase()) : fromBase64(text)
  return (request: ReceivedRequest): Claim | Refusal => {
    const given = headerOf(request, header)
    if (!given.ok) return given
    const time =
      timestampHeader === undefined ? undefined : headerOf(request, timestampHeader, "timestamp")
    if (time?.ok === false) return time
    const at = time === undefined ? undefined : timeOf(time.value, timestampUnit)
    if (time !== undefined && at === undefined)
      return malformedTime(
        timestampHeader ?? header,
        timestampUnit === "s" ? undefined : "whole milliseconds since 1970"
      )
    const id = isIdSigned
      ? headerOf(request, scheme.id?.slice("header:".length) ?? header)
      : undefined
    if (id?.ok === false) return id
    const text = given.value.startsWith(prefix) ? given.value.slice(prefix.length) : ""
    const signatures = decoded([text], decode)
    if (signatures.length === 0)
      return malformedSignature(header, `${prefix}${encoding === "hex" ? "HEX" : "BASE64"}`)
    const named: Record<SchemePart, string | Uint8Array> = {
      body: request.body,
      timestamp: time?.value ?? "",
      id: id?.value ?? "",
      url: signedUrl(publicUrl, request.url),
      method: request.method
    }
    const parts = template.map((one) => ("text" in one ? one.text : named[one.part]))
    return { ok: true, signatures, parts, ...(at !== undefined && { at }) }
  }
}

const makeRead = (scheme: GenericHmacScheme) => {
  const { at, id, subject, type } = scheme
  const looksInside = [id, type, at, subject].some((place) => place?.startsWith("body:"))
  return (request: ReceivedRequest): Reading => {
    const json = looksInside ? bodyJson(request.body) : undefined
    if (looksInside && json === undefined) return unreadable("The body is not JSON.")
    const found = (place: string | undefined): string | undefined => {
      if (place === undefined) return undefined
      const [, where = "", name = ""] = /^(header|body):(.*)$/s.exec(place) ?? []
      return where === "header"
        ? request.headers[name] || undefined
        : textAt(json, ...name.split("."))
    }
    const foundType = type === undefined ? "webhook" : found(type)
    if (foundType === undefined)
      return unreadable(`The request has no type in ${type}, where it is looked for.`)
    const time = found(at)
    const number = Number(time)
    return wholeBody(request, {
      id: found(id),
      type: foundType,
      at: momentAt({ time: Number.isFinite(number) ? number : time }, "s", "time"),
      subject: found(subject)
    })
  }
}

export const genericHmacKind: ProviderKind<GenericHmacSettings> = {
  name: "hmac",
  title: "a generic HMAC",
  settings: [
    secretsSetting("what the sender signs with"),
    {
      name: "scheme",
      isRequired: true,
      text: 'how the sender signs, such as {"header":"x-acme-signature"}',
      problem: schemeProblem
    },
    { ...publicUrlSetting, isRequired: false },
    toleranceSetting
  ],
  toleranceMs: minutesMs(5),
  repeatsForMs: daysMs(30),
  retries429: false,
  words: {
    header: "`scheme.header`",
    signed: "`scheme.signed`, else the body",
    id: "`scheme.id`",
    type: "`scheme.type`, else the word `webhook`",
    at: "`scheme.at`",
    subject: "`scheme.subject`"
  },
  problems: ({ publicUrl, scheme, secrets }) => [
    ...(scheme.signed?.includes("{url}") === true && publicUrl === undefined
      ? ["`publicUrl` is missing: the scheme signs {url}"]
      : []),
    ...(secrets.some((secret) => keyOf(secret, scheme.secretEncoding) === undefined)
      ? [`\`secrets\` must be in ${scheme.secretEncoding}, as the scheme says`]
      : [])
  ],
  make: (settings) => {
    const { scheme, secrets, toleranceMs = minutesMs(5) } = settings
    const keys: ReadonlyArray<KeyObject> = secrets.flatMap(
      (secret) => keyOf(secret, scheme.secretEncoding) ?? []
    )
    const claimOf = makeClaimOf(settings)
    return {
      verify: (request, nowMs) =>
        verifiedByHmac(claimOf(request), keys, nowMs, toleranceMs, scheme.algorithm),
      read: makeRead(scheme)
    }
  }
}

/** Webhooks of a sender that signs by HMAC in a form of its own, which `scheme` describes. */
export const genericHmac = (settings: GenericHmacSettings): Provider =>
  provide(genericHmacKind, settings)
