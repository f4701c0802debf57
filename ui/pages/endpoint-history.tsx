import { curlCommand } from "../curl.ts"
import { List, usePage } from "../list.tsx"
import { Command } from "../parts.tsx"
import { address } from "../router.ts"
import { petrel } from "../session.ts"
import { Ago } from "../times.tsx"

/** Returns what a setting was or became. */
export const valueText = (value: unknown): string =>
  value === undefined ? "none" : typeof value === "string" ? value : JSON.stringify(value)

/** What tells two endpoints of a name apart is nobody's setting. */
const isSetting = ({ setting }: { readonly setting: string }): boolean => setting !== "generation"

/** Who has changed an endpoint, and what, newest first. */
export const EndpointHistory = ({
  id,
  tenant
}: {
  readonly id: string
  readonly tenant: string
}) => {
  const asked = usePage(`history ${id}`, [], (_, options) =>
    petrel.endpoints.history({ tenant, id, limit: 50 }, options)
  )
  return (
    <>
      <div class="title">
        <h1>
          <a href={address(["endpoints", tenant, id])}>
            {tenant}/{id}
          </a>
        </h1>
        <span class="small">changes, newest first</span>
      </div>
      <List
        asked={asked}
        items={(page) => page.changes}
        keyOf={({ revision }) => revision}
        empty="The history reaches back to none."
        head={
          <>
            <th class="n">Revision</th>
            <th>Change</th>
            <th>What</th>
            <th class="hide-s">By</th>
            <th class="n">When</th>
          </>
        }
        row={(one) => (
          <>
            <td class="n">{one.revision}</td>
            <td>{one.change}</td>
            <td class="wrap">
              {one.differences.length === 0 && "–"}
              {one.differences.filter(isSetting).map(({ from, setting, to }) => (
                <div key={setting}>
                  <b>{setting}</b>{" "}
                  {one.change === "added" ? valueText(to) : `${valueText(from)} → ${valueText(to)}`}
                </div>
              ))}
            </td>
            <td class="hide-s">{one.by ?? "–"}</td>
            <td class="n">
              <Ago at={one.at} />
            </td>
          </>
        )}
      />
      <Command
        text={`petrel endpoint show ${tenant}/${id} --history`}
        request={curlCommand(`/v1/tenants/${tenant}/endpoints/${id}/history`)}
      />
    </>
  )
}
