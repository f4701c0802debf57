import { Console as NodeConsole } from "node:console"
import { Writable } from "node:stream"
import * as NodeChildProcessSpawner from "@effect/platform-node-shared/NodeChildProcessSpawner"
import * as NodeFileSystem from "@effect/platform-node-shared/NodeFileSystem"
import * as NodePath from "@effect/platform-node-shared/NodePath"
import * as NodeTerminal from "@effect/platform-node-shared/NodeTerminal"
import { ConfigProvider, Console, Effect, Layer, Stdio, Stream } from "effect"
import { visible } from "../../src/cli/format/visible.ts"
import { program, reportExit } from "../../src/cli/program.ts"
import { loggingTo } from "../../src/cli/terminal/logging.ts"
import { Output } from "../../src/cli/terminal/stdout.ts"

/** Its exit code for a command that was interrupted, as by Ctrl-C. */
const interrupted = 130

/** Collects the lines that are written. */
const collector = () => {
  const chunks: Array<Buffer> = []
  const stream = new Writable({
    write: (chunk: Buffer, _, written) => {
      chunks.push(Buffer.from(chunk))
      written()
    }
  })
  const lines = () => {
    const text = Buffer.concat(chunks).toString()
    return text === "" ? [] : text.replace(/\n$/, "").split("\n")
  }
  return { stream, lines }
}

/** What commands need of the system to read their arguments. */
export const platform = NodeChildProcessSpawner.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, NodeTerminal.layer))
)

/**
 * Runs a `petrel` command to its end in this process, which takes a tenth of the CPU time of a
 * process of its own. It has no terminal and none of the test's services.
 *
 * @param input its standard input.
 */
export const runWith = (input: string | Uint8Array, ...args: ReadonlyArray<string>) =>
  Effect.promise(async (signal) => {
    const [out, err] = [collector(), collector()]
    const streams = { stdout: out.stream, stderr: err.stream }
    const { NATS_URL: _, ...env } = process.env
    const surroundings = Layer.mergeAll(
      platform,
      loggingTo({ write: (line) => void err.stream.write(visible(line)) }),
      Stdio.layerTest({
        args: Effect.succeed(args),
        stdin: Stream.make(typeof input === "string" ? Buffer.from(input) : input)
      }),
      Layer.succeed(Output, streams),
      Layer.succeed(Console.Console, new NodeConsole(streams)),
      Layer.succeed(ConfigProvider.ConfigProvider, ConfigProvider.fromEnvRecord(env))
    )
    // Not as a part of the test's fiber: a command would find the services of the test there.
    const exit = await Effect.runPromiseExit(Effect.provide(program, surroundings), { signal })
    const code = reportExit(exit, interrupted, streams)
    return { code, out: out.lines(), err: err.lines() }
  })

/** Runs a `petrel` command to its end in this process, with nothing on its standard input. */
export const run = (...args: ReadonlyArray<string>) => runWith("", ...args)
