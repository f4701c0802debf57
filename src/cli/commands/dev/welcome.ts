import { bytesText } from "../../../operations/text/bytes.ts"
import type { DevConsole } from "./console.ts"
import type { DevToken } from "./token.ts"

/** The texts that `petrel dev` prints about itself. */
export interface Welcome {
  /** Printed when it accepts events. */
  readonly ready: ReadonlyArray<string>
  /** The next steps. Printed after the sample events, if there are any. */
  readonly next: ReadonlyArray<string>
}

const defaultUrl = "nats://127.0.0.1:4222"

/** Returns the texts for an installation. */
export const welcome = (options: {
  readonly nats: string
  /** The file of the broker's token, and the broker's address for a shell. */
  readonly token: Pick<DevToken, "file" | "shellUrl"> | undefined
  readonly data: string
  /** Size of the store, and the events' part of it, in bytes. */
  readonly store: number
  readonly eventBytes: number
  readonly eventRoot: string
  readonly console: DevConsole
  readonly sample: { readonly first: boolean } | undefined
  /** Where the worker's numbers are served. */
  readonly metrics?: string | undefined
}): Welcome => {
  const { console, data, eventBytes, eventRoot, metrics, nats, sample, store, token } = options
  const events = eventBytes < 0 ? "" : `, ${bytesText(eventBytes)} of them for events`
  const body = sample === undefined ? `'{"invoice":43}'` : `'{"invoice":43,"fail":1}'`
  return {
    ready: [
      `Petrel takes events at ${nats} and keeps everything in ${data}. Ctrl-C stops it.`,
      `It may fill ${bytesText(store)} of the disk${events} (--store).`,
      token === undefined
        ? "Everybody on this machine may read and change all of it, secrets too; --token asks for one."
        : `It asks its clients for the token in ${token.file}.`,
      `Its HTTP API is at ${console.address} (${console.address}/docs shows it), for the token in ${console.tokenFile}.`,
      ...(metrics === undefined ? [] : [`Its numbers are at ${metrics}.`]),
      "",
      ...(sample?.first === true
        ? [
            "Three events of different types go to a sample endpoint, default/sample. Its receiver",
            "refuses two of them at first, so that you see what happens then:",
            ""
          ]
        : [])
    ],
    next: [
      ...(sample?.first === true ? [""] : []),
      "To publish an event of your own, in another terminal:",
      ...(token === undefined
        ? nats === defaultUrl
          ? []
          : [`  export NATS_URL=${nats}`]
        : [`  export NATS_URL=${token.shellUrl(nats)}`]),
      `  npx petrel publish default invoice.paid ${body}`,
      `  nats pub ${eventRoot}.default.invoice.paid ${body}`,
      `  curl ${console.address}/v1/tenants/default/events/invoice.paid --json ${body} \\`,
      `    -H ${console.shellHeader}`,
      ...(sample === undefined
        ? []
        : ['The sample receiver refuses an event "fail" times before it takes it.']),
      "To send events to a receiver of your own:",
      "  npx petrel endpoint add default/mine --url http://127.0.0.1:3000/hooks",
      "To look back: npx petrel history, npx petrel dead list. What happens appears here:",
      ""
    ]
  }
}
