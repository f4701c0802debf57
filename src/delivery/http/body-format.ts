import type { BodyFormat } from "../../domain/settings/endpoint-table.ts"
import { alertMessage } from "../../text/alert-message.ts"

/** Characters that mean something in a message of Slack, and what stands for them. */
const escapes: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" }

/**
 * Returns a body as a receiver wants it: for `slack` a message with the alert in words, or else the
 * body's own text.
 */
export const formatted = (body: Uint8Array, format: BodyFormat): Uint8Array => {
  switch (format) {
    case "slack": {
      const text = Buffer.from(body).toString("utf8")
      const message = (alertMessage(text) ?? text).replaceAll(
        /[&<>]/g,
        (one) => escapes[one] ?? one
      )
      return Buffer.from(JSON.stringify({ text: message }))
    }
  }
}
