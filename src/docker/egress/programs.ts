/*
 * Programs for Node in helper containers, with the task as JSON in the first argument. Each prints one line
 * of JSON; one that serves something then runs until its container is removed, a minute at most.
 */

/**
 * Sets an installation's chain, or removes it, and reports any change. Each address family is one kernel
 * transaction, so rules apply at every moment.
 */
export const SET_RULES = `
const { execFileSync } = require('node:child_process');
const { existsSync } = require('node:fs');
const { chain, from, ipv4, ipv6 } = JSON.parse(process.argv[1]);
const families = [['iptables', ipv4]];
if (existsSync('/proc/net/if_inet6')) families.push(['ip6tables', ipv6]);

let changed = false;
for (const [program, rules] of families) {
  const before = ours(program);
  const jumps = before.filter((line) => line.startsWith('-A PREROUTING '));
  const isThere = before.some((line) => line === '-N ' + chain);
  if (!rules && !isThere) continue;
  const lines = [
    '*mangle',
    ...(rules ? [':' + chain + ' - [0:0]', ...rules.map((rule) => '-A ' + chain + ' ' + rule)] : []),
    ...jumps.map((jump) => jump.replace('-A', '-D')),
    ...(rules ? ['-I PREROUTING 1 ' + from.join(' ') + ' -j ' + chain] : ['-F ' + chain, '-X ' + chain]),
    'COMMIT',
    '',
  ];
  xtables([program + '-restore', '--noflush'], lines.join('\\n'));
  if (ours(program).join('\\n') !== before.join('\\n')) changed = true;
}
console.log(JSON.stringify({ changed }));

function ours(program) {
  const lines = xtables([program, '-t', 'mangle', '-S'], '').split('\\n');
  return lines.filter((line) => line.split(' ').includes(chain));
}
function xtables(args, input) {
  return execFileSync('xtables-nft-multi', args, { input, encoding: 'utf8', stdio: 'pipe', timeout: 10000 });
}
`;

/**
 * Reports the engine's settings for its containers: the target of `host.docker.internal` and the name
 * servers. Also acts as a peer on a private address by accepting connections there.
 */
export const NEIGHBOUR = `
const { readFileSync } = require('node:fs');
const { networkInterfaces } = require('node:os');
const hosts = readFileSync('/etc/hosts', 'utf8');
const gateway = /^(\\S+)\\s(?:.*\\s)?host\\.docker\\.internal(?:\\s|$)/m.exec(hosts);
const resolvers = readFileSync('/etc/resolv.conf', 'utf8').matchAll(/^nameserver\\s+([\\d.]+)\\s*$/gm);
const own = Object.values(networkInterfaces()).flat();
const address = own.find(({ family, internal }) => family === 'IPv4' && !internal);
const server = require('node:net').createServer((socket) => socket.on('error', () => {}).destroy());
server.listen(0, '0.0.0.0', () =>
  console.log(
    JSON.stringify({
      gateway: gateway ? gateway[1] : null,
      resolvers: [...resolvers].map(([, each]) => each),
      address: address ? address.address : null,
      port: server.address().port,
    }),
  ),
);
setTimeout(() => process.exit(), 60000);
`;

/** Tries to connect from an agent's network. A refusal came from the target, so it counts as reached. */
export const TRY = `
const net = require('node:net');
const { networkInterfaces } = require('node:os');
const { targets, timeoutMs } = JSON.parse(process.argv[1]);
const own = Object.values(networkInterfaces()).flat();
Promise.all(targets.map(attempt)).then((reached) => {
  const ipv6 = own.some(({ family, internal }) => family === 'IPv6' && !internal);
  console.log(JSON.stringify({ reached, ipv6 }));
});

function attempt([host, port]) {
  return new Promise((resolve) => {
    const socket = net.connect({ host, port });
    const end = (reached) => {
      socket.destroy();
      resolve(reached);
    };
    socket.setTimeout(timeoutMs, () => end(false));
    socket.on('connect', () => end(true));
    socket.on('error', ({ code }) => end(code === 'ECONNREFUSED' || code === 'ECONNRESET'));
  });
}
`;
