import { execFile } from "node:child_process"
import { copyFile, mkdir, mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"

const Lock = Schema.fromJsonString(
  Schema.Struct({
    packages: Schema.Record(
      Schema.String,
      Schema.Struct({
        version: Schema.String,
        integrity: Schema.optionalKey(Schema.String),
        resolved: Schema.optionalKey(Schema.String),
        hasInstallScript: Schema.optionalKey(Schema.Boolean),
        bin: Schema.optionalKey(Schema.Struct({ node: Schema.optionalKey(Schema.String) }))
      })
    )
  })
)

const read = (name: string) => readFile(new URL(`../${name}`, import.meta.url), "utf8")

describe("package-lock.json", () => {
  it("names all that is installed by its contents, and none that runs a script for it", async () => {
    const { packages } = Schema.decodeUnknownSync(Lock)(await read("package-lock.json"))
    const { "": petrel, ...others } = packages
    assert.isDefined(petrel)
    const odd = Object.entries(others).filter(
      ([, { hasInstallScript, integrity, resolved }]) =>
        integrity === undefined || resolved !== undefined || hasInstallScript === true
    )
    assert.deepStrictEqual(odd, [])
    assert.match(await read(".npmrc"), /^ignore-scripts=true$/m)
  })

  it("has one core of the NATS clients, whatever each of them names", async () => {
    const { packages } = Schema.decodeUnknownSync(Lock)(await read("package-lock.json"))
    assert.lengthOf(
      Object.keys(packages).filter((path) => path.endsWith("@nats-io/nats-core")),
      1
    )
  })

  it("has the Node that everything runs on, of one version for each platform", async () => {
    const { packages } = Schema.decodeUnknownSync(Lock)(await read("package-lock.json"))
    const nodes = Object.entries(packages).filter(([, { bin }]) => bin?.node !== undefined)
    assert.deepStrictEqual(
      nodes.map(([path, { version }]) => `${path.slice("node_modules/".length)} ${version}`),
      ["bin-darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64"].map(
        (platform) => `node-${platform} ${process.versions.node}`
      )
    )
  })
})

describe("the program of a clone", () => {
  const program = new URL("../src/cli/petrel.js", import.meta.url)
  const run = (path: string) =>
    promisify(execFile)(process.execPath, [path, "--version"]).then(
      ({ stdout }) => stdout,
      ({ stderr }: { readonly stderr: string }) => stderr
    )

  it("runs the sources, and says how to make a package where it was packed with them", async () => {
    assert.match(await run(program.pathname), /^petrel v?\d+\.\d+/)
    const folder = await mkdtemp(join(tmpdir(), "petrel-test-packed-"))
    const cli = join(folder, "node_modules/petrel/src/cli")
    try {
      await mkdir(cli, { recursive: true })
      await copyFile(program, join(cli, "petrel.js"))
      await copyFile(new URL("main.ts", program), join(cli, "main.ts"))
      assert.match(
        await run(join(cli, "petrel.js")),
        /^petrel: .*`npm run build && npm pack \.\/dist`/
      )
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})
