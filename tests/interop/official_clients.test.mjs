// The official clients of the model services, and Vercel's `ai`, against `reagent mock`: plain, streaming, tools, errors.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {createAnthropic} from '@ai-sdk/anthropic';
import {createGoogleGenerativeAI} from '@ai-sdk/google';
import {createOpenAI} from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import {GoogleGenAI} from '@google/genai';
import {generateText, stepCountIs, streamText, tool} from 'ai';
import {Ollama} from 'ollama';
import OpenAI from 'openai';
import {z} from 'zod';

import {journal, program, withMock} from './support.mjs';

const reagent = program('REAGENT');
const greeting = 'Grüße, 世界: it is a fine day today.';
const usage = {prompt_tokens: 11, completion_tokens: 4};
const fixtures = [
    {match: {hasToolResult: true}, response: {content: 'It is 22 degrees.'}, usage},
    {match: {userMessage: 'weather'}, response: {content: 'Let me look.', toolCalls: [{name: 'weather', arguments: {city: 'Zürich'}}]}, usage},
    {match: {userMessage: 'bad'}, response: {error: {message: 'that was bad', status: 400}}},
    {match: {}, response: {content: greeting}, usage},
];
const schema = {type: 'object', properties: {city: {type: 'string'}}, required: ['city']};

/** What every client must see. `ask(text, stream, history)` → {text, calls: [{name, arguments, id}], input, output, turn}; history: [that turn's call and result]. */
function suite(name, path, make) {
    for (const stream of [false, true]) {
        test(`${name} ${stream ? 'streams' : 'asks'}: text, tools, usage`, () => withMock(reagent, fixtures, async (origin) => {
            const client = make(origin);
            const plain = await client.ask('hello', stream);
            assert.deepEqual([plain.text, plain.calls, plain.input, plain.output], [greeting, [], 11, 4]);
            const first = await client.ask('weather?', stream);
            assert.equal(first.text, 'Let me look.');
            assert.deepEqual(first.calls.map((c) => [c.name, c.arguments]), [['weather', {city: 'Zürich'}]]);
            const second = await client.ask('weather?', stream, first);
            assert.deepEqual([second.text, second.calls], ['It is 22 degrees.', []]);
            const sent = await journal(origin);
            assert.deepEqual(sent.map((e) => [e.path.replace(/models\/.*/, 'models/'), e.stream, e.status, e.end]), Array(3).fill([path, stream, 200, 'complete']));
            assert.ok(!JSON.stringify(sent).includes('test-key'));
        }));
    }
    test(`${name} sees an error`, () => withMock(reagent, fixtures, async (origin) => {
        await assert.rejects(() => make(origin).ask('bad', false), /that was bad/);
    }));
}

suite('openai chat', '/v1/chat/completions', (origin) => {
    const client = new OpenAI({apiKey: 'test-key', baseURL: `${origin}/v1`, maxRetries: 0});
    return {async ask(text, stream, before) {
        const messages = [{role: 'user', content: text}];
        if (before) messages.push(before.turn, {role: 'tool', tool_call_id: before.calls[0].id, content: '22'});
        const body = {model: 'm', messages, tools: [{type: 'function', function: {name: 'weather', parameters: schema}}]};
        const answer = stream ? await client.chat.completions.stream({...body, stream_options: {include_usage: true}}).finalChatCompletion()
            : await client.chat.completions.create(body);
        const turn = answer.choices[0].message;
        return {turn, text: turn.content, input: answer.usage.prompt_tokens, output: answer.usage.completion_tokens,
            calls: (turn.tool_calls ?? []).map((c) => ({id: c.id, name: c.function.name, arguments: JSON.parse(c.function.arguments)}))};
    }};
});

suite('openai responses', '/v1/responses', (origin) => {
    const client = new OpenAI({apiKey: 'test-key', baseURL: `${origin}/v1`, maxRetries: 0});
    return {async ask(text, stream, before) {
        const input = [{role: 'user', content: text}];
        if (before) input.push(...before.turn, {type: 'function_call_output', call_id: before.calls[0].id, output: '22'});
        const body = {model: 'm', input, tools: [{type: 'function', name: 'weather', parameters: schema, strict: false}]};
        const answer = stream ? await client.responses.stream(body).finalResponse() : await client.responses.create(body);
        return {turn: answer.output, text: answer.output_text, input: answer.usage.input_tokens, output: answer.usage.output_tokens,
            calls: answer.output.filter((i) => i.type === 'function_call').map((c) => ({id: c.call_id, name: c.name, arguments: JSON.parse(c.arguments)}))};
    }};
});

suite('anthropic', '/v1/messages', (origin) => {
    const client = new Anthropic({apiKey: 'test-key', baseURL: origin, maxRetries: 0});
    return {async ask(text, stream, before) {
        const messages = [{role: 'user', content: text}];
        if (before) {
            messages.push({role: 'assistant', content: before.turn},
                {role: 'user', content: [{type: 'tool_result', tool_use_id: before.calls[0].id, content: '22'}]});
        }
        const body = {model: 'm', max_tokens: 100, messages, tools: [{name: 'weather', input_schema: schema}]};
        const answer = stream ? await client.messages.stream(body).finalMessage() : await client.messages.create(body);
        return {turn: answer.content, text: answer.content.map((b) => b.text ?? '').join(''), input: answer.usage.input_tokens, output: answer.usage.output_tokens,
            calls: answer.content.filter((b) => b.type === 'tool_use').map((b) => ({id: b.id, name: b.name, arguments: b.input}))};
    }};
});

suite('google genai', '/v1beta/models/', (origin) => {
    const client = new GoogleGenAI({apiKey: 'test-key', httpOptions: {baseUrl: origin}});
    return {async ask(text, stream, before) {
        const contents = [{role: 'user', parts: [{text}]}];
        if (before) contents.push({role: 'model', parts: before.turn}, {role: 'user', parts: [{functionResponse: {id: before.calls[0].id, name: 'weather', response: {degrees: 22}}}]});
        const body = {model: 'm', contents, config: {tools: [{functionDeclarations: [{name: 'weather', parametersJsonSchema: schema}]}]}};
        const chunks = [];
        if (stream) for await (const chunk of await client.models.generateContentStream(body)) chunks.push(chunk);
        else chunks.push(await client.models.generateContent(body));
        const turn = chunks.flatMap((c) => c.candidates[0].content.parts).filter((p) => p.text !== '');
        const used = chunks.at(-1).usageMetadata;
        return {turn, text: turn.map((p) => p.text ?? '').join(''), input: used.promptTokenCount, output: used.candidatesTokenCount,
            calls: turn.filter((p) => p.functionCall).map((p) => ({id: p.functionCall.id, name: p.functionCall.name, arguments: p.functionCall.args}))};
    }};
});

suite('ollama', '/api/chat', (origin) => {
    const client = new Ollama({host: origin});
    return {async ask(text, stream, before) {
        const messages = [{role: 'user', content: text}];
        if (before) messages.push(before.turn, {role: 'tool', tool_name: 'weather', content: '22'});
        const body = {model: 'm', messages, tools: [{type: 'function', function: {name: 'weather', description: 'w', parameters: schema}}]};
        const lines = [];
        if (stream) for await (const line of await client.chat({...body, stream})) lines.push(line);
        else lines.push(await client.chat(body));
        const turn = {role: 'assistant', content: lines.map((l) => l.message.content).join(''), tool_calls: lines.flatMap((l) => l.message.tool_calls ?? [])};
        return {turn, text: turn.content, input: lines.at(-1).prompt_eval_count, output: lines.at(-1).eval_count,
            calls: turn.tool_calls.map((c) => ({id: c.id, name: c.function.name, arguments: c.function.arguments}))};
    }};
});

const vercel = {
    'openai chat': (origin) => createOpenAI({apiKey: 'test-key', baseURL: `${origin}/v1`}).chat('m'),
    'openai responses': (origin) => createOpenAI({apiKey: 'test-key', baseURL: `${origin}/v1`}).responses('m'),
    anthropic: (origin) => createAnthropic({apiKey: 'test-key', baseURL: `${origin}/v1`})('m'),
    google: (origin) => createGoogleGenerativeAI({apiKey: 'test-key', baseURL: `${origin}/v1beta`})('m'),
};
for (const [name, make] of Object.entries(vercel)) {
    test(`ai with ${name}: its own loop calls the tool`, () => withMock(reagent, fixtures, async (origin) => {
        const asked = [];
        const common = {model: make(origin), maxRetries: 0, stopWhen: stepCountIs(3), prompt: 'weather?', tools: {weather: tool({
            description: 'w', inputSchema: z.object({city: z.string()}), execute: async ({city}) => (asked.push(city), '22')})}};
        const whole = await generateText(common);
        assert.deepEqual([whole.text, whole.steps.length, whole.totalUsage.inputTokens, whole.totalUsage.outputTokens], ['It is 22 degrees.', 2, 22, 8]);
        let failure;
        const streamed = streamText({...common, onError: ({error}) => { failure = error; }});
        let text = '';
        for await (const piece of streamed.textStream) text += piece;
        assert.equal(failure, undefined);
        assert.equal(text, 'Let me look.It is 22 degrees.');
        assert.deepEqual(asked, ['Zürich', 'Zürich']);
    }));
}
