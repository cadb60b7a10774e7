// Starts `nestream lsp` for .neel files, and again when a setting of it changes.
"use strict";

const path = require("node:path");
const vscode = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");

let client;

// A relative path such as .venv/bin/nestream is meant from the folder that is open.
function commandOf(settings, folder) {
  const command = settings.get("command") || "nestream";
  return folder && /[\\/]/.test(command) && !path.isAbsolute(command) ? path.join(folder, command) : command;
}

async function start() {
  const settings = vscode.workspace.getConfiguration("nestream");
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  const command = commandOf(settings, folder);
  const run = { command, args: ["lsp"], transport: TransportKind.stdio, options: folder ? { cwd: folder } : {} };
  client = new LanguageClient("nestream", "nestream", { run, debug: run }, {
    documentSelector: [{ language: "neel" }],
    initializationOptions: {
      events: settings.get("events"),
      time: settings.get("time"),
      type: settings.get("type"),
    },
  });
  try {
    await client.start();
  } catch (problem) {
    client = undefined;
    vscode.window.showErrorMessage(
      `The language server of nestream did not start with "${command} lsp": ${problem.message}. ` +
        'Run "nestream doctor", or set nestream.command.',
    );
  }
}

async function stop() {
  const running = client;
  client = undefined;
  await running?.stop();
}

async function restart() {
  await stop();
  await start();
}

exports.activate = async (context) => {
  context.subscriptions.push(
    vscode.commands.registerCommand("nestream.restart", restart),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("nestream")) {
        void restart();
      }
    }),
  );
  await start();
};

exports.deactivate = stop;
