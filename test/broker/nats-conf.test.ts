import { execFile } from "node:child_process"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import { findNatsServer } from "../../src/broker/embedded/binary.ts"
import { defaultTopology, wanted } from "../../src/broker/topology.ts"
import { makeNames } from "../../src/domain/names.ts"
import { natsConf, onFreePorts, takenIntoUse } from "../kit/nats-accounts.ts"
import { launch } from "../kit/nats-server.ts"

const exec = promisify(execFile)

let directory = ""
let binary = ""
let text = ""
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "petrel-test-conf-"))
  binary = (await Effect.runPromise(findNatsServer())).path
  text = await readFile(natsConf, "utf8")
})
afterAll(() => rm(directory, { recursive: true, force: true }))

describe("nats.conf", () => {
  it("is valid as it is", async () => {
    assert.include((await exec(binary, ["-c", natsConf, "-t"])).stderr, "is valid")
  })

  it("runs as it is, on loopback and with its store beside it", async () => {
    const file = join(directory, "as-it-is.conf")
    await writeFile(file, onFreePorts(text))
    const server = await launch(binary, file)
    try {
      const nc = await connect({ servers: `nats://127.0.0.1:${server.port}` })
      const jsm = await jetstreamManager(nc)
      for (const { stream } of wanted(makeNames(), defaultTopology, nc.info?.max_payload ?? 0))
        await jsm.streams.add(stream)
      assert.strictEqual(nc.info?.host, "127.0.0.1")
      await nc.close()
      assert.isNotEmpty(
        await readFile(
          join(directory, ".petrel/broker/jetstream/$G/streams/PETREL_EVENTS/meta.inf")
        )
      )
    } finally {
      await server.end()
    }
  })

  it("is valid with its TLS block taken into use", async () => {
    const key = join(directory, "broker.key")
    const certificate = join(directory, "broker.crt")
    await exec("openssl", [
      ...["req", "-x509", "-newkey", "ed25519", "-nodes", "-days", "1", "-subj", "/CN=localhost"],
      ...["-keyout", key, "-out", certificate]
    ])
    const block = /^#tls \{\n(?:#.*\n)*?#\}$/m
    assert.match(text, block)
    const file = join(directory, "tls.conf")
    await writeFile(
      file,
      text
        .replace(block, takenIntoUse)
        .replace("/etc/petrel/tls/broker.crt", certificate)
        .replace("/etc/petrel/tls/broker.key", key)
    )
    assert.include((await exec(binary, ["-c", file, "-t"])).stderr, "is valid")
  })
})
