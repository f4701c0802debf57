import type { Writable } from "node:stream"
import { Context, Effect, Schema, Stdio, Stream } from "effect"
import { bytesText } from "../../text/quantities.ts"
import { visible, visibleInColours } from "../format/visible.ts"
import { Refused } from "../refused.ts"

/** The streams that a command writes to. */
export interface OutputStreams {
  readonly stdout: Writable
  readonly stderr: Writable
}

/** By default those of this process. Tests run several commands in one process. */
export const Output = Context.Reference<OutputStreams>("petrel/cli/Output", {
  defaultValue: () => process
})

/** Returns true if stdout is a terminal that supports colours and NO_COLOR is not set. */
export const coloured = (): boolean => process.stdout.isTTY && process.stdout.hasColors()

/** Prints a remark about the results on stderr. */
export const remark = (text: string): Effect.Effect<void> =>
  Effect.map(Output, ({ stderr }) => {
    stderr.write(`${visible(text)}\n`)
  })

/** Whether somebody is at a terminal who can be asked. */
export const canAsk = Effect.gen(function* () {
  const stdio = yield* Stdio.Stdio
  return (yield* stdio.stdinIsTerminal) && (yield* stdio.stdoutIsTerminal)
})

/** The reader of the results has gone (`| head`). The command ends without a failure. */
export class OutputClosed extends Schema.TaggedError<OutputClosed>()("OutputClosed", {}) {}

const write = (content: string | Uint8Array): Effect.Effect<void, OutputClosed | Refused> =>
  Effect.flatMap(Output, ({ stdout }) =>
    Effect.callback((resume) => {
      stdout.write(content, (error) => resume(written(error)))
    })
  )

const written = (error: (Error & { readonly code?: string }) | null | undefined) => {
  if (error === undefined || error === null) return Effect.void
  return error.code === "EPIPE"
    ? Effect.fail(new OutputClosed())
    : Effect.fail(new Refused({ message: `cannot write the results: ${error.message}` }))
}

const fit = (text: string): string => (coloured() ? visibleInColours(text) : visible(text))

/**
 * Writes one or more lines of results and waits until they are written. Control sequences in them
 * are escaped.
 */
export const print = (line: string) => write(`${fit(line)}\n`)

/** Writes bytes unchanged. */
export const printRaw = (bytes: Uint8Array) => write(bytes)

/** Clears the terminal. */
export const clearScreen = write("\u001b[2J\u001b[H")

/** Overwrites the terminal line by line, without flicker. */
export const redraw = (lines: ReadonlyArray<string>) =>
  write(`\u001b[H${lines.map((line) => `${fit(line)}\u001b[K`).join("\n")}\u001b[J\n`)

/** Reads standard input as bytes. Fails if there are more than `most`. */
export const readStdin = (most: number) =>
  Effect.gen(function* () {
    const { stdin } = yield* Stdio.Stdio
    const chunks: Array<Uint8Array> = []
    let bytes = 0
    yield* stdin.pipe(
      Stream.runForEach((chunk) => {
        chunks.push(chunk)
        bytes += chunk.length
        return bytes > most
          ? Effect.fail(new Refused({ message: `standard input has more than ${bytesText(most)}` }))
          : Effect.void
      }),
      Effect.catchTag("PlatformError", (error) =>
        Effect.fail(new Refused({ message: `cannot read standard input: ${error.message}` }))
      )
    )
    return Buffer.concat(chunks)
  })
