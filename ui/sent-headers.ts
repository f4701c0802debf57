/* What an attempt sends beside its body, and how a receiver verifies that. */

/** What tells how an endpoint's requests look. */
export interface Signing {
  readonly sign: "standard" | "standard-ed25519" | "stripe" | "github" | "none"
  readonly signatureHeader?: string
  readonly headerNames?: {
    readonly id?: string
    readonly type?: string
    readonly timestamp?: string
  }
  /** With values that are masked. */
  readonly headers: Readonly<Record<string, string>>
  readonly forwardHeaders?: ReadonlyArray<string>
  readonly publicKey?: string
}

/** One attempt. */
export interface SentAttempt {
  readonly event: string
  readonly type: string
  /** From 1. */
  readonly number: number
  /** When it began, ms since the epoch. */
  readonly beganAt: number
}

/** One header. */
export interface SentHeader {
  readonly name: string
  /** Undefined where it is secret, or not known here. */
  readonly value: string | undefined
  readonly says?: string
}

/** Returns the name of the header with the signature; undefined where nothing is signed. */
const signatureName = ({ sign, signatureHeader }: Signing): string | undefined =>
  ({
    standard: "webhook-signature",
    "standard-ed25519": "webhook-signature",
    stripe: signatureHeader ?? "petrel-signature",
    github: "x-hub-signature-256",
    none: undefined
  })[sign]

/** Returns what is signed, and how, in words. */
const signatureText = ({ sign }: Signing, id: string, seconds: number): string =>
  ({
    standard: `v1, and the base64 of HMAC-SHA256(secret, "${id}.${seconds}." + body); one for each secret that is valid`,
    "standard-ed25519": `v1a, and the base64 of the Ed25519 signature of "${id}.${seconds}." + body; the public key verifies it`,
    stripe: `t=${seconds},v1= and the hexadecimal HMAC-SHA256(secret, "${seconds}." + body); one v1 for each secret that is valid`,
    github: "sha256= and the hexadecimal HMAC-SHA256(newest secret, body)",
    none: ""
  })[sign]

/** Returns the headers that an attempt is sent with, as far as they are Petrel's. */
export const sentHeaders = (
  of: Signing,
  { beganAt, event, number, type }: SentAttempt
): ReadonlyArray<SentHeader> => {
  const { id = "webhook-id", timestamp = "webhook-timestamp", ...names } = of.headerNames ?? {}
  const seconds = Math.floor(beganAt / 1_000)
  const signature = signatureName(of)
  return [
    { name: id, value: event, says: "the event, the same at each attempt" },
    { name: names.type ?? "webhook-event-type", value: type },
    { name: timestamp, value: String(seconds), says: "when the attempt was signed" },
    ...(of.sign === "github"
      ? [
          { name: "x-github-event", value: type },
          { name: "x-github-delivery", value: event }
        ]
      : []),
    ...(signature === undefined
      ? []
      : [{ name: signature, value: undefined, says: signatureText(of, event, seconds) }]),
    { name: "content-type", value: undefined, says: "as published, else application/json" },
    { name: "petrel-attempt", value: String(number) },
    { name: "user-agent", value: undefined, says: "Petrel/ and its version" },
    ...Object.keys(of.headers).map((name) => ({
      name,
      value: undefined,
      says: "the endpoint's own; its value is not shown"
    })),
    ...(of.forwardHeaders ?? []).map((name) => ({
      name,
      value: undefined,
      says: "the publisher's, if it was given"
    }))
  ]
}

/** Code that verifies a request, in one language. */
export interface Snippet {
  readonly language: string
  readonly code: string
}

/** Returns code for receivers: `rawBody` are the bytes as they came, `headers` has names in lower case. */
export const verifySnippets = (of: Signing): ReadonlyArray<Snippet> => {
  const { id = "webhook-id", timestamp = "webhook-timestamp" } = of.headerNames ?? {}
  const header = signatureName(of) ?? ""
  const isUsual = id === "webhook-id" && timestamp === "webhook-timestamp"
  const named = (quote: string, headers: string) =>
    `"webhook-id": ${headers}${quote}${id}${quote}], "webhook-timestamp": ${headers}${quote}${timestamp}${quote}], "webhook-signature": ${headers}${quote}webhook-signature${quote}]`
  switch (of.sign) {
    case "standard":
      return [
        {
          language: "Node",
          code: `import { Webhook } from "standardwebhooks"

new Webhook(secret).verify(rawBody, ${isUsual ? "headers" : `{ ${named('"', "headers[")} }`})`
        },
        {
          language: "Python",
          code: `from standardwebhooks import Webhook

Webhook(secret).verify(raw_body, ${isUsual ? "headers" : `{${named('"', "headers[")}}`})`
        },
        {
          language: "PHP",
          code: `$signed = $headers["${id}"] . "." . $headers["${timestamp}"] . "." . $rawBody;
$key = base64_decode(substr($secret, strlen("whsec_")));
$own = "v1," . base64_encode(hash_hmac("sha256", $signed, $key, true));
foreach (explode(" ", $headers["webhook-signature"]) as $one)
  if (hash_equals($own, $one)) return true;
return false;`
        }
      ]
    case "standard-ed25519":
      return [
        {
          language: "Node",
          code: `import { createPublicKey, verify } from "node:crypto"

const x = Buffer.from(publicKey.slice("whpk_".length), "base64").toString("base64url")
const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" })
const signed = Buffer.concat([Buffer.from(headers["${id}"] + "." + headers["${timestamp}"] + "."), rawBody])
const isOurs = headers["webhook-signature"].split(" ").some((one) =>
  verify(null, signed, key, Buffer.from(one.slice("v1a,".length), "base64")))
if (!isOurs) throw new Error("not signed by the sender")`
        }
      ]
    case "stripe":
      return [
        {
          language: "Node",
          code: `import Stripe from "stripe"

Stripe.webhooks.constructEvent(rawBody, headers["${header}"], secret)`
        },
        {
          language: "Python",
          code: `import stripe

stripe.WebhookSignature.verify_header(raw_body.decode(), headers["${header}"], secret, 300)`
        }
      ]
    case "github":
      return [
        {
          language: "Node",
          code: `import { verify } from "@octokit/webhooks-methods"

if (!(await verify(secret, rawBody.toString(), headers["${header}"])))
  throw new Error("not signed by the sender")`
        },
        {
          language: "Python",
          code: `import hashlib, hmac

own = "sha256=" + hmac.new(secret.encode(), raw_body, hashlib.sha256).hexdigest()
assert hmac.compare_digest(own, headers["${header}"])`
        }
      ]
    case "none":
      return []
  }
}

const shellText = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** Returns the request of an attempt for a shell, without what is secret of it. */
export const curlOfAttempt = (
  url: string,
  headers: ReadonlyArray<SentHeader>,
  body: { readonly text?: string; readonly contentType?: string }
): string =>
  [
    `curl -X POST ${shellText(url)}`,
    ...headers
      .filter(({ name }) => name !== "user-agent")
      .map(({ name, value }) =>
        name === "content-type"
          ? shellText(`content-type: ${body.contentType ?? "application/json"}`)
          : shellText(`${name}: ${value ?? "NOT-SHOWN"}`)
      )
      .map((text) => `-H ${text}`),
    body.text === undefined ? "--data-binary @payload" : `--data-binary ${shellText(body.text)}`
  ].join(" \\\n  ")
