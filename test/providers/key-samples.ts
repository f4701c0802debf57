import {
  type createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign as signWith
} from "node:crypto"
import { crc32 } from "node:zlib"
import { discord } from "../../src/providers/discord.ts"
import { paypal } from "../../src/providers/paypal.ts"
import { sendgrid } from "../../src/providers/sendgrid.ts"
import { testCertificates } from "./certificates.ts"
import { json, type Key, request, type Sample, seconds } from "./sample.ts"

const asPem = (key: ReturnType<typeof createPrivateKey>): string =>
  key.export({ format: "pem", type: "pkcs8" }).toString()

const discordKey = (): Key => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519")
  const verifying = Buffer.from(publicKey.export({ format: "jwk" }).x ?? "", "base64url")
  return { signing: asPem(privateKey), verifying: verifying.toString("hex") }
}

const sendgridKey = (): Key => {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" })
  const verifying = createPublicKey(privateKey).export({ format: "der", type: "spki" })
  return { signing: asPem(privateKey), verifying: verifying.toString("base64") }
}

const timed = (toleranceMs: number | undefined) =>
  toleranceMs === undefined ? {} : { toleranceMs }

const certificateUrl =
  "https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-1d93a270"

/** Providers that sign with a key of which receivers have the public half. */
export const keySamples: ReadonlyArray<Sample> = [
  {
    name: "discord",
    keys: [discordKey(), discordKey()],
    make: (secrets, toleranceMs) => discord({ secrets, ...timed(toleranceMs) }),
    body: json({
      version: 1,
      application_id: "1234560123453231555",
      type: 1,
      event: {
        type: "APPLICATION_AUTHORIZED",
        timestamp: "2026-11-25T10:00:00.123Z",
        data: { user: { id: "80351110224678912" } }
      }
    }),
    sign: ({ at, body, key }) =>
      request(
        {
          "x-signature-timestamp": seconds(at),
          "x-signature-ed25519": signWith(
            null,
            Buffer.concat([Buffer.from(seconds(at)), body]),
            key.signing
          ).toString("hex")
        },
        body
      ),
    header: "x-signature-ed25519",
    timeHeader: "x-signature-timestamp",
    isTimeSigned: true,
    isBodySigned: true
  },
  {
    name: "sendgrid",
    keys: [sendgridKey(), sendgridKey()],
    make: (secrets, toleranceMs) => sendgrid({ secrets, ...timed(toleranceMs) }),
    body: json([
      {
        sg_event_id: "sg_1",
        sg_message_id: "14c5d75ce93.dfd.64b469.filter0001.16648.5515E0B88.0",
        event: "delivered",
        timestamp: 1_795_000_000,
        email: "a@example.com"
      }
    ]),
    sign: ({ at, body, key }) =>
      request(
        {
          "x-twilio-email-event-webhook-timestamp": seconds(at),
          "x-twilio-email-event-webhook-signature": signWith(
            "sha256",
            Buffer.concat([Buffer.from(seconds(at)), body]),
            key.signing
          ).toString("base64")
        },
        body
      ),
    header: "x-twilio-email-event-webhook-signature",
    timeHeader: "x-twilio-email-event-webhook-timestamp",
    isTimeSigned: true,
    isBodySigned: true
  },
  {
    name: "paypal",
    // PayPal's key is in its certificate. What differs between receivers is the webhook's id.
    keys: [
      { signing: "0FV983392A0531201", verifying: "0FV983392A0531201" },
      { signing: "0FV983392A0531202", verifying: "0FV983392A0531202" }
    ],
    make: ([webhookId = ""], toleranceMs) =>
      paypal({
        webhookId,
        certificate: async () => testCertificates.chain,
        roots: [testCertificates.root],
        ...timed(toleranceMs)
      }),
    body: json({
      id: "WH-1",
      event_type: "PAYMENT.SALE.COMPLETED",
      create_time: "2026-11-25T10:00:00Z",
      resource: { id: "sale_1" }
    }),
    sign: ({ at, body, key }) => {
      const time = new Date(at).toISOString().replace(".000Z", "Z")
      const message = `afa30d40-ca4a|${time}|${key.signing}|${crc32(body)}`
      return request(
        {
          "paypal-auth-algo": "SHA256withRSA",
          "paypal-cert-url": certificateUrl,
          "paypal-transmission-id": "afa30d40-ca4a",
          "paypal-transmission-time": time,
          "paypal-transmission-sig": signWith(
            "sha256",
            Buffer.from(message),
            testCertificates.leafKey
          ).toString("base64")
        },
        body
      )
    },
    header: "paypal-transmission-sig",
    isTimeSigned: true,
    isBodySigned: true,
    isOneKeyOnly: true
  }
]
