import { type KeyObject, verify as verifyWith } from "node:crypto"
import { crc32 } from "node:zlib"
import { momentAt, readObject, textAt } from "./body.ts"
import { certificatesOf, chainProblem, isOfDomain } from "./certificates.ts"
import { fromBase64 } from "./encoded.ts"
import { daysMs, type ProviderKind, provide } from "./kind.ts"
import type { Provider, Reading, ReceivedRequest, Verification } from "./provider.ts"
import { textSetting, toleranceSetting } from "./settings.ts"
import {
  headerOf,
  malformedSignature,
  malformedTime,
  mismatch,
  type Refusal,
  refuse,
  untimely
} from "./signed.ts"

export interface PaypalSettings {
  /** PayPal's id of the webhook, which it signs. */
  readonly webhookId: string
  /**
   * Returns PayPal's certificate and those above it, in PEM. It is called with a URL of PayPal's,
   * for each request: keep what it got. If it fails, so does `verify`.
   */
  readonly certificate: (url: string) => Promise<string>
  /** Certificates in PEM that PayPal's may come from. (Default: those that Node trusts) */
  readonly roots?: ReadonlyArray<string>
  /** How far the signed time may be off, ms. (Default: it is not looked at) */
  readonly toleranceMs?: number
}

const header = "paypal-transmission-sig"
const timeHeader = "paypal-transmission-time"
const urlForm =
  /^https:\/\/api(-m)?(\.sandbox)?\.paypal\.com\/v1\/notifications\/certs\/[A-Za-z0-9_-]{1,100}$/

const certificateRefused = (text: string): Refusal => refuse("certificate-refused", text)

const keyFrom = (
  pem: string,
  roots: ReadonlyArray<string> | undefined,
  nowMs: number
): { readonly ok: true; readonly key: KeyObject } | Refusal => {
  const chain = certificatesOf(pem)
  const problem = chainProblem(chain, roots, nowMs)
  const [first] = chain
  if (problem !== undefined || first === undefined)
    return certificateRefused(`The certificate ${problem}.`)
  return isOfDomain(first, "paypal.com")
    ? { ok: true, key: first.publicKey }
    : certificateRefused("The certificate is not PayPal's.")
}

/** For how long a chain that was checked counts, ms. */
const checkedForMs = 60_000

/** Returns what checks chains, and remembers the last one: PayPal uses one for a long time. */
const makeKeyFrom = (roots: ReadonlyArray<string> | undefined) => {
  let last: { readonly pem: string; readonly at: number; readonly key: KeyObject } | undefined
  return (pem: string, nowMs: number) => {
    if (last?.pem === pem && Math.abs(nowMs - last.at) < checkedForMs)
      return { ok: true, key: last.key } as const
    const found = keyFrom(pem, roots, nowMs)
    if (found.ok) last = { pem, at: nowMs, key: found.key }
    return found
  }
}

const makeVerify = ({ certificate, roots, toleranceMs, webhookId }: PaypalSettings) => {
  const checkedKey = makeKeyFrom(roots)
  return async (request: ReceivedRequest, nowMs: number): Promise<Verification> => {
    const given = headerOf(request, header)
    if (!given.ok) return given
    const id = headerOf(request, "paypal-transmission-id")
    if (!id.ok) return id
    const time = headerOf(request, timeHeader, "timestamp")
    if (!time.ok) return time
    const url = headerOf(request, "paypal-cert-url")
    if (!url.ok) return url
    const at = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(time.value) ? Date.parse(time.value) : Number.NaN
    if (Number.isNaN(at)) return malformedTime(timeHeader, "the form 2026-11-25T10:00:00Z")
    const signature = fromBase64(given.value)
    if (signature === undefined) return malformedSignature(header, "base64")
    if (!urlForm.test(url.value))
      return certificateRefused("The header paypal-cert-url has no URL of PayPal's certificates.")
    if (request.headers["paypal-auth-algo"] !== "SHA256withRSA")
      return malformedSignature("paypal-auth-algo", "SHA256withRSA")
    const known = checkedKey(await certificate(url.value), nowMs)
    if (!known.ok) return known
    const message = [id.value, time.value, webhookId, crc32(request.body)].join("|")
    if (!verifyWith("sha256", Buffer.from(message), known.key, signature))
      return mismatch(1, "webhook id")
    return untimely(at, nowMs, toleranceMs) ?? { ok: true, secret: 0, at }
  }
}

const read = (request: ReceivedRequest): Reading =>
  readObject(request, "PayPal", "`event_type`", (event) => ({
    id: textAt(event, "id"),
    type: textAt(event, "event_type"),
    at: momentAt(event, "s", "create_time"),
    subject: textAt(event, "resource", "id")
  }))

export const paypalKind: ProviderKind<PaypalSettings> = {
  name: "paypal",
  title: "PayPal",
  settings: [
    textSetting("webhookId", true, "PayPal's id of the webhook"),
    {
      name: "certificate",
      isRequired: true,
      text: "what fetches PayPal's certificate",
      problem: (value) => (typeof value === "function" ? undefined : "must be a function")
    },
    {
      name: "roots",
      isRequired: false,
      text: "the certificates in PEM that PayPal's may come from",
      problem: (value) =>
        Array.isArray(value) &&
        value.every((one) => typeof one === "string" && certificatesOf(one).length > 0)
          ? undefined
          : "must be a list of certificates in PEM"
    },
    toleranceSetting
  ],
  // It tries for 3 days; an event can be listed and sent again, by hand, for 30.
  repeatsForMs: daysMs(30),
  retries429: true,
  words: {
    header,
    signed:
      "`paypal-transmission-id`, `paypal-transmission-time`, the webhook's id and the body's CRC-32, by RSA",
    id: "`id`",
    type: "`event_type`",
    at: "`create_time`",
    subject: "`resource.id`"
  },
  make: (settings) => ({ verify: makeVerify(settings), read })
}

/** Webhooks of PayPal, by its certificate and the id of the webhook. */
export const paypal = (settings: PaypalSettings): Provider => provide(paypalKind, settings)
