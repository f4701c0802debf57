import { Effect, Stdio, Stream } from "effect"
import { bytesText } from "../../operations/text/bytes.ts"
import { Refused } from "../refused.ts"

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
