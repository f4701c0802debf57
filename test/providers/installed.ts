/** What `petrel/providers` exports, apart from its types. */
export const exportedProviders = [
  "InvalidProviderSettings",
  "discord",
  "genericHmac",
  "github",
  "gitlab",
  "hubspot",
  "linear",
  "mailgun",
  "meta",
  "paddle",
  "paypal",
  "petrel",
  "provider",
  "providers",
  "sendgrid",
  "shopify",
  "slack",
  "square",
  "standardWebhooks",
  "stripe",
  "twilio",
  "x",
  "zoom"
]

/** A program beside the installed package: it verifies one request of each kind of signature. */
export const verifyingProgram = `import { createHmac, generateKeyPairSync, sign } from "node:crypto"
import { crc32 } from "node:zlib"
import { discord, paypal, providers, stripe } from "petrel/providers"

const now = 1795000000000
const seconds = String(now / 1000)
const body = Buffer.from(JSON.stringify({ id: "evt_1", type: "invoice.paid" }))
const mac = createHmac("sha256", "whsec_1").update(seconds + ".").update(body).digest("hex")
const { privateKey, publicKey } = generateKeyPairSync("ed25519")
const hex = Buffer.from(publicKey.export({ format: "jwk" }).x, "base64url").toString("hex")
const signature = sign(null, Buffer.concat([Buffer.from(seconds), body]), privateKey).toString("hex")
const asked = [
  [stripe({ secrets: ["whsec_1"] }), { "stripe-signature": "t=" + seconds + ",v1=" + mac }],
  [stripe({ secrets: ["whsec_2"] }), { "stripe-signature": "t=" + seconds + ",v1=" + mac }],
  [discord({ secrets: [hex] }), { "x-signature-timestamp": seconds, "x-signature-ed25519": signature }],
  [
    paypal({ webhookId: "1", certificate: async () => "none" }),
    {
      "paypal-cert-url": "https://api.paypal.com/v1/notifications/certs/CERT-1",
      "paypal-auth-algo": "SHA256withRSA",
      "paypal-transmission-id": "1",
      "paypal-transmission-time": "2026-11-18T10:00:00Z",
      "paypal-transmission-sig": "AAAA"
    }
  ]
]
const said = []
for (const [provider, headers] of asked) {
  const request = { method: "POST", url: "/in", headers, body }
  const found = await provider.verify(request, now)
  const reading = provider.read(request)
  said.push([found.ok || found.problem, reading.ok && reading.events[0].type])
}
console.log(JSON.stringify([...said, [providers.size, crc32("a") > 0]]))
`

/** What it says. */
export const verified = [
  [true, "invoice.paid"],
  ["signature-mismatch", "invoice.paid"],
  [true, false],
  ["certificate-refused", false],
  [20, true]
]
