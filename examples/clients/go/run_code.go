// run_code SOCKET CODE [INTERPRETER] - an agent's tool call: code of a model, run in a sandbox of its own.
//
// Standard library only.  Makes a sandbox, puts the code there, runs it, reads the file that it
// wrote (result.txt, if it did), and ends the sandbox, whatever happens.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
)

// Refused is what the gate does not allow, with the way out: worth showing to the model.
type Refused struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

func (r *Refused) Error() string {
	return strings.TrimSpace("refused: " + r.Code + ": " + r.Message + " " + r.Hint)
}

// Client speaks to the socket of one listener.
type Client struct{ http *http.Client }

func NewClient(path string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
	return &Client{&http.Client{Transport: &http.Transport{DialContext: dial}}}
}

func (c *Client) ask(method, target string, body []byte) ([]byte, error) {
	request, err := http.NewRequest(method, "http://localhost"+target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode < 300 {
		return data, err
	}
	var refused struct {
		Error *Refused `json:"error"`
	}
	if err := json.Unmarshal(data, &refused); err != nil || refused.Error == nil {
		return nil, fmt.Errorf("status %d", answer.StatusCode)
	}
	return nil, refused.Error
}

func (c *Client) askJSON(method, target string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	data, err := c.ask(method, target, text)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

func run(c *Client, code []byte, interpreter string) (status int, err error) {
	var made struct{ ID string }
	if err := c.askJSON("POST", "/v1/sandboxes", map[string]any{"lifetime": "5m"}, &made); err != nil {
		return 1, err
	}
	box := "/v1/sandboxes/" + made.ID
	defer func() {
		if _, ended := c.ask("DELETE", box, nil); err == nil {
			err = ended
		}
	}()
	if _, err := c.ask("PUT", box+"/files/work/code", code); err != nil {
		return 1, err
	}
	var done struct {
		Stdout, Stderr string
		ExitCode       int  `json:"exit_code"`
		TimedOut       bool `json:"timed_out"`
	}
	wanted := map[string]any{"argv": []string{interpreter, "/work/code"}, "timeout": "30s"}
	if err := c.askJSON("POST", box+"/exec", wanted, &done); err != nil {
		return 1, err
	}
	fmt.Print(done.Stdout)
	fmt.Fprint(os.Stderr, done.Stderr)
	result, err := c.ask("GET", box+"/files/work/result.txt", nil)
	var refused *Refused
	if err == nil {
		fmt.Println("result:", strings.TrimSpace(string(result)))
	} else if !errors.As(err, &refused) || refused.Code != "file_not_found" {
		return 1, err
	}
	if done.TimedOut {
		return 124, nil
	}
	return done.ExitCode, nil
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: run_code SOCKET CODE [INTERPRETER]")
		os.Exit(2)
	}
	interpreter := "python3"
	if len(os.Args) > 3 {
		interpreter = os.Args[3]
	}
	code, err := os.ReadFile(os.Args[2])
	if err == nil {
		var status int
		if status, err = run(NewClient(os.Args[1]), code, interpreter); err == nil {
			os.Exit(status)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
