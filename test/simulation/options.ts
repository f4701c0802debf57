import { readCommandOptions } from "../kit/command-options.ts"

export const help = `npm run simulate -- [OPTIONS]

  --seeds N         runs N seeds (default: 100), from --from on (default: 1)
  --seed N          runs one seed; with --trace it prints what happened, then the life of what failed
  --only TEXT       with --trace: prints lines that contain the text only
  --file FILE       runs a file of explicit actions, as --shrink writes them; may be given several times
  --shrink          leaves out what the failure of --seed does not need, and prints a file of actions
  --seconds N       stops after N seconds
  --hour            runs for an hour, from a seed of the clock, and prints the table of faults
  --processes N     how many processes share the seeds (default: 2 with --hour, else 1)
  --crowded       has a few events fill the router's window: others are held beside it, or returned
  --bypass          has events pass by a bypass again and again, as while another tenant's flood waits
  --large          takes each event for more than one endpoint as one for many: in turns, in parts of two
  --sabotage NAME   runs the engine with one of the sabotages (sabotages.ts) until it is found
  --sabotages       runs each sabotage in a process of its own, and says after how many seeds it is found
  --table           prints the table of faults
  --json            prints one JSON object a seed`

export const readOptions = () =>
  readCommandOptions("simulate", {
    seeds: { type: "string" },
    from: { type: "string", default: "1" },
    seed: { type: "string" },
    trace: { type: "boolean", default: false },
    only: { type: "string" },
    file: { type: "string", multiple: true },
    shrink: { type: "boolean", default: false },
    seconds: { type: "string" },
    hour: { type: "boolean", default: false },
    processes: { type: "string" },
    large: { type: "boolean", default: false },
    crowded: { type: "boolean", default: false },
    bypass: { type: "boolean", default: false },
    sabotage: { type: "string" },
    sabotages: { type: "boolean", default: false },
    table: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false }
  })

export type Options = ReturnType<typeof readOptions>
