import { Webhook } from "standardwebhooks"
import { standardWebhooks } from "../../src/providers/standard-webhooks.ts"

/* A sender whose requests the library of Standard Webhooks signs. */

const secret = `whsec_${Buffer.from("a secret of the tests of the kit").toString("base64")}`
const webhook = new Webhook(secret)

/** What the receiver knows of the sender. */
export const sender = () => standardWebhooks({ secrets: [secret] })

/** Returns a signed request. */
export const signed = (
  id: string,
  content: string | object,
  more: Readonly<Record<string, string>> = {}
) => {
  const body = typeof content === "string" ? content : JSON.stringify(content)
  const at = new Date()
  return {
    method: "POST",
    body,
    headers: {
      "content-type": "application/json",
      "webhook-id": id,
      "webhook-timestamp": `${Math.floor(at.getTime() / 1_000)}`,
      "webhook-signature": webhook.sign(id, at, body),
      ...more
    }
  }
}

/** Returns a signed request of an event. */
export const event = (id: string, type = "invoice.paid", data: object = {}) =>
  signed(id, { type, timestamp: new Date().toISOString(), data })
