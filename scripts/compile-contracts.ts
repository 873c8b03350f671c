import { readFileSync } from 'node:fs';
import path from 'node:path';
import { format } from 'oxfmt';
import solc from 'solc';
import * as z from 'zod';
import { projectRoot } from '../dev/root.js';

const SOURCE = 'contracts/PaymentEscrow.sol';

/** The product's file with the compiled contract. */
export const COMPILED = path.join(projectRoot, 'src', 'money', 'chain', 'payment-escrow.ts');

/** Format of the sources. */
const style = z.object({ printWidth: z.number(), singleQuote: z.boolean() });

const compiled = z.object({
  errors: z.array(z.object({ severity: z.string(), formattedMessage: z.string() })).default([]),
  contracts: z
    .record(
      z.string(),
      z.record(
        z.string(),
        z.object({
          abi: z.unknown(),
          evm: z.object({ bytecode: z.object({ object: z.string() }) }),
        }),
      ),
    )
    .default({}),
});

/** Compiles the contract into a module with its interface and code; takes seconds. */
export async function compileEscrow(): Promise<string> {
  const input = {
    language: 'Solidity',
    sources: { [SOURCE]: { content: read(SOURCE) } },
    settings: {
      evmVersion: 'paris',
      optimizer: { enabled: true, runs: 200 },
      // Makes the code depend on the source only, not on the machine that compiles it.
      metadata: { bytecodeHash: 'none', appendCBOR: false },
      outputSelection: { [SOURCE]: { PaymentEscrow: ['abi', 'evm.bytecode.object'] } },
    },
  };
  const output = solc.compile(JSON.stringify(input), { import: importOf });
  const { contracts, errors } = compiled.parse(JSON.parse(output));
  const contract = contracts[SOURCE]?.PaymentEscrow;
  if (!contract) throw new Error(errors.map((error) => error.formattedMessage).join('\n'));
  const text = `// Made by npm run build:contracts from ${SOURCE}.
import type { Hex } from 'viem';

/** The interface of \`PaymentEscrow\`. */
export const escrowAbi = ${JSON.stringify(contract.abi)} as const;

/** The creation code, to be followed by the constructor's arguments. */
export const escrowCode: Hex = '0x${contract.evm.bytecode.object}';
`;
  const { code } = await format(COMPILED, text, style.parse(JSON.parse(read('.oxfmtrc.json'))));
  return code;
}

const read = (file: string) => readFileSync(path.join(projectRoot, file), 'utf8');

/** Returns an imported source; all imports are from npm packages. */
function importOf(file: string): { contents: string } | { error: string } {
  try {
    return { contents: read(path.join('node_modules', file)) };
  } catch (error) {
    return { error: String(error) };
  }
}
