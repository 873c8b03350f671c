export const CREDENTIAL_NAME = /^[A-Z][A-Z0-9_]{0,63}$/;

/** Prefixes reserved for the platform, the runtime and program loaders. */
const RESERVED_PREFIXES = [
  'OPENCLAW_',
  'PLATFORM_',
  'NODE_',
  'NPM_CONFIG_',
  'LD_',
  'XDG_',
  'BASH_',
];

/** The proxy variables would redirect the agent's AI calls, with its token. */
const RESERVED: ReadonlySet<string> = new Set([
  'PATH',
  'HOME',
  'HOSTNAME',
  'USER',
  'SHELL',
  'PWD',
  'IFS',
  'ENV',
  'TMPDIR',
  'OPENSSL_CONF',
  'SSLKEYLOGFILE',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'ALL_PROXY',
  'NO_PROXY',
]);

/** Reports whether users may not set a variable of the platform, the runtime or a loader. */
export function isReservedName(name: string): boolean {
  return RESERVED.has(name) || RESERVED_PREFIXES.some((prefix) => name.startsWith(prefix));
}
