import { signed, type ServerName } from '../../support/provider-rules.js';

interface StreamEvent {
  readonly event?: string;
  readonly data: unknown;
}

/** An answer with thinking, text and a tool call, in the provider's own format. */
export interface ToolAnswer {
  readonly whole: unknown;
  readonly events: readonly StreamEvent[];
}

const THOUGHT = 'I need the weather.';
const TEXT = 'Let me look.';
const TOOL = 'get_weather';

/** Returns the answer of a turn; turns of one provider differ in their ids and arguments. */
export function toolAnswer(server: ServerName, model: string, turn: number): ToolAnswer {
  switch (server) {
    case 'anthropic':
      return ofAnthropic(model, `toolu_${turn}`);
    case 'gemini':
      return ofGemini(model);
    case 'groq':
      return ofOpenAiFormat(model, `fc_${'0af9'.repeat(20)}_${turn}`, '{"city":"Rome"}', {
        reasoning: THOUGHT,
      });
    case 'openrouter':
      return ofOpenAiFormat(model, `functions.${TOOL}:0`, '{"city":"Rome"}', {
        reasoning: THOUGHT,
        reasoning_details: [
          { type: 'reasoning.encrypted', data: 'abc', format: 'openai-responses-v1', index: 0 },
        ],
      });
    case 'minimax':
      return ofOpenAiFormat(model, 'call_function_1', '{"city":"Ro', {
        reasoning_content: THOUGHT,
        reasoning_details: [
          { type: 'reasoning.text', text: THOUGHT, format: 'MiniMax-response-v1', index: 0 },
        ],
      });
    default:
      return ofOpenAiFormat(model, `call_${turn}`, '{"city":"Rome"}', { refusal: null });
  }
}

function ofAnthropic(model: string, id: string): ToolAnswer {
  const signature = signed(model, THOUGHT);
  const content = [
    { type: 'thinking', thinking: THOUGHT, signature },
    { type: 'text', text: TEXT },
    { type: 'tool_use', id, name: TOOL, input: { city: 'Rome' } },
  ];
  const usage = { input_tokens: 3, output_tokens: 2 };
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model, usage };
  const delta = (index: number, piece: object) => ({
    type: 'content_block_delta',
    index,
    delta: piece,
  });
  const begin = (index: number, block: object) => ({
    type: 'content_block_start',
    index,
    content_block: block,
  });
  const end = (index: number) => ({ type: 'content_block_stop', index });
  const events = [
    { type: 'message_start', message: { ...message, content: [] } },
    begin(0, { type: 'thinking', thinking: '', signature: '' }),
    delta(0, { type: 'thinking_delta', thinking: THOUGHT.slice(0, 7) }),
    delta(0, { type: 'thinking_delta', thinking: THOUGHT.slice(7) }),
    delta(0, { type: 'signature_delta', signature }),
    end(0),
    begin(1, { type: 'text', text: '' }),
    delta(1, { type: 'text_delta', text: TEXT }),
    end(1),
    begin(2, { type: 'tool_use', id, name: TOOL, input: {} }),
    delta(2, { type: 'input_json_delta', partial_json: '{"city":"Rome"}' }),
    end(2),
    { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage },
    { type: 'message_stop' },
  ];
  return {
    whole: { ...message, content, stop_reason: 'tool_use' },
    events: events.map((data) => ({ event: data.type, data })),
  };
}

function ofGemini(model: string): ToolAnswer {
  const parts = [
    { text: THOUGHT, thought: true },
    { text: TEXT },
    {
      functionCall: { name: TOOL, args: { city: 'Rome' } },
      thoughtSignature: signed(model, TOOL),
    },
  ];
  const whole = {
    candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2 },
  };
  return { whole, events: [{ data: whole }] };
}

function ofOpenAiFormat(model: string, id: string, json: string, extra: object): ToolAnswer {
  const head = { id: 'chatcmpl-1', created: 1, model };
  const call = { id, type: 'function', function: { name: TOOL, arguments: json } };
  const message = { role: 'assistant', content: TEXT, ...extra, tool_calls: [call] };
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
  const chunk = (delta: object, reason: string | null = null) => ({
    data: {
      ...head,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, finish_reason: reason }],
    },
  });
  return {
    whole: {
      ...head,
      object: 'chat.completion',
      choices: [{ index: 0, message, finish_reason: 'tool_calls' }],
      usage,
    },
    events: [
      chunk({ role: 'assistant', content: TEXT, ...extra }),
      chunk({ tool_calls: [{ index: 0, ...call, function: { name: TOOL, arguments: '' } }] }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: json } }] }),
      chunk({}, 'tool_calls'),
      { data: { ...head, object: 'chat.completion.chunk', choices: [], usage } },
      { data: '[DONE]' },
    ],
  };
}

// Deltas are JSON of any form.
type Json = ReturnType<typeof JSON.parse>;

/** Returns the message of a stream, assembled as simple clients do, by appending to lists and texts. */
export function messageOf(chunks: readonly string[]): Json {
  const message: Json = { role: 'assistant', content: '' };
  for (const { choices } of chunks.map((chunk) => JSON.parse(chunk))) {
    const { tool_calls: pieces = [], ...delta } = choices[0]?.delta ?? {};
    for (const [field, value] of Object.entries(delta)) {
      if (Array.isArray(value)) message[field] = [...(message[field] ?? []), ...value];
      else if (field === 'content') message.content += typeof value === 'string' ? value : '';
      else message[field] = value;
    }
    for (const { index, ...piece } of pieces) {
      message.tool_calls ??= [];
      const known = message.tool_calls[index];
      if (known) known.function.arguments += piece.function.arguments;
      else message.tool_calls[index] = piece;
    }
  }
  return message;
}
