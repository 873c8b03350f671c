import { chmod, writeFile } from 'node:fs/promises';
import * as z from 'zod';
import { run } from '../processes/run.js';

const config = z.looseObject({
  apps: z.looseObject({
    tls: z.looseObject({
      automation: z.looseObject({ policies: z.array(z.looseObject({})) }),
    }),
  }),
});

/** Caddy's own authority, which needs no network. */
const ISSUERS = { issuers: [{ module: 'internal' }] };

/**
 * Writes a Caddyfile as Caddy reads it, with one difference: its certificates are of Caddy's own authority, in which
 * this machine does not trust.
 */
export async function withOwnAuthority(
  file: string,
  target: string,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const adapted = await run('caddy', ['adapt', '--config', file, '--adapter', 'caddyfile'], {
    env,
    timeout: 10_000,
  });
  const { apps, ...others } = config.parse(JSON.parse(adapted));
  const { automation, ...tls } = apps.tls;
  const policies = [...automation.policies.map((each) => ({ ...each, ...ISSUERS })), ISSUERS];
  const own = {
    ...others,
    apps: {
      ...apps,
      tls: { ...tls, automation: { ...automation, policies } },
      pki: { certificate_authorities: { local: { install_trust: false } } },
    },
  };
  await writeFile(target, JSON.stringify(own));
  await chmod(target, 0o644);
}
